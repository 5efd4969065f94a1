"""chronos report: the report that the bot sends, here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from chronos.cli.output import AsJson, answer
from chronos.errors import BadInput


def report(
    period: Annotated[str, typer.Option(help="today, 7d, 30d, 2026-11-18 or 2026-11-01..2026-11-15")] = "7d",
    zone: Annotated[str | None, typer.Option(help="IANA time zone of the days; this machine's if not given")] = None,
    language: Annotated[str | None, typer.Option(help="ru or en; this shell's if not given")] = None,
    png: Annotated[Path | None, typer.Option(help="write the chart into this file")] = None,
    pdf: Annotated[Path | None, typer.Option(help="write the PDF into this file")] = None,
    as_json: AsJson = False,
) -> None:
    """What Chronos did: how much, how well, what failed, how long it took."""
    from chronos.language import language_of
    from chronos.reports.gathering import gather
    from chronos.reports.texts import text_of
    from chronos.runtime import runtime

    speaks = language_of(language or _language()).code
    with runtime().database.statement() as connection:
        activity = gather(connection, period, zone or _zone())
    if png is not None:
        from chronos.reports.charts import chart_of

        _write(png, chart_of(activity, speaks))
    if pdf is not None:
        from chronos.reports.documents import pdf_of

        _write(pdf, pdf_of(activity, speaks))
    answer(activity.model_dump(mode="json"), as_json, text_of(activity, speaks).splitlines())


def _write(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise BadInput(f"cannot write {file}: {error.strerror}") from None


def _language() -> str:
    spoken = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    return "ru" if spoken.startswith("ru") else "en"


def _zone() -> str:
    """The name that this machine's clock goes by; UTC where it has none."""
    from chronos.models.period import checked_zone

    named = os.environ.get("TZ", "").lstrip(":") or str(Path("/etc/localtime").resolve()).partition("zoneinfo/")[2]
    try:
        return checked_zone(named)
    except BadInput:
        return "UTC"
