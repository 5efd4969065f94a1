"""chronos dlq: list, show, retry, clear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from chronos.cli.output import AsJson, answer, shown, table
from chronos.errors import BadInput

if TYPE_CHECKING:
    from datetime import datetime

    from chronos.dead_letters import Cause

app = typer.Typer(no_args_is_help=True, help="Dead letters: what failed for good, grouped by cause.")

Which = Annotated[
    str | None,
    typer.Argument(metavar="[ID]", help="one, by its id or its task's; else use a filter"),
]
OfQueue = Annotated[str | None, typer.Option("--queue", help="all of this queue")]
OfCause = Annotated[str | None, typer.Option("--cause", help="all of the cause that `dlq list` shows")]
All = Annotated[bool, typer.Option("--all", help="all there are")]


@app.command("list")
def list_(queue: OfQueue = None, as_json: AsJson = False) -> None:
    """Grouped by cause, the most frequent first."""
    from datetime import UTC, datetime

    from chronos.dead_letters import causes
    from chronos.runtime import runtime

    found = causes(runtime(), queue)
    now = datetime.now(UTC)
    rows = [_columns(cause, now) for cause in found]
    answer(found, as_json, table(rows, right=("count",), wide="reason") or ["no dead letters"])


def _columns(cause: Cause, now: datetime) -> dict[str, str]:
    from chronos.durations import relative

    return {
        "cause": cause.cause,
        "queue": cause.queue,
        "count": str(cause.count),
        "last": relative(min(cause.last, now), now),
        "reason": " ".join(cause.reason.split()),
    }


@app.command("show")
def show(
    id_: Which = None,
    queue: OfQueue = None,
    cause: OfCause = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    as_json: AsJson = False,
) -> None:
    """Dead letters in full, the newest first."""
    from chronos.dead_letters import Choice, records
    from chronos.runtime import runtime

    found = records(runtime(), Choice(id_, queue, cause), limit)
    if not found and id_:
        raise BadInput(f"there is no dead letter {id_}")
    lines: list[str] = []
    for record in found:
        for name, value in record.items():
            if name == "traceback":
                lines += ["traceback", *(f"  {line}" for line in (value or "").splitlines())]
            elif value is not None:
                lines.append(f"{name:<16} {shown(value)}")
        lines.append("")
    answer(found, as_json, lines[:-1] or ["no dead letters"])


@app.command("retry")
def retry(
    id_: Which = None,
    queue: OfQueue = None,
    cause: OfCause = None,
    everything: All = False,
    as_json: AsJson = False,
) -> None:
    """Run them again, with all their attempts."""
    from chronos.dead_letters import Choice
    from chronos.dead_letters import retry as revive
    from chronos.runtime import runtime

    done = revive(runtime(), Choice(id_, queue, cause, everything), "cli")
    lines = [f"{done.retried} pending again"]
    if done.not_tasks:
        lines.append(f"{done.not_tasks} never were tasks and cannot run; `chronos dlq clear` forgets them")
    answer(done, as_json, lines)


@app.command("clear")
def clear(
    id_: Which = None,
    queue: OfQueue = None,
    cause: OfCause = None,
    everything: All = False,
    as_json: AsJson = False,
) -> None:
    """Forget them; --queue and --all also empty RabbitMQ's dead-letter queues (.XQ)."""
    from chronos.dead_letters import Choice
    from chronos.dead_letters import clear as forget
    from chronos.runtime import runtime

    gone = forget(runtime(), Choice(id_, queue, cause, everything))
    answer({"cleared": gone}, as_json, [f"{gone} cleared"])
