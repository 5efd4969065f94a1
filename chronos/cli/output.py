"""How answers look: JSON for programs, a table or lines for people, at 80 columns and in a pipe alike."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="the answer as JSON")]


def answer(data: Any, as_json: bool, lines: Iterable[str]) -> None:
    """The data, or the lines that say the same to a person."""
    if as_json:
        sys.stdout.write(json.dumps(_plain(data), default=_text, ensure_ascii=False) + "\n")
        return
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))


def say_as_it_happens(as_json: bool) -> Callable[[str, str, str], None]:
    """For a command that goes on: (part, state, more) as one line at once. A closed terminal stops nothing."""

    def say(part: str, state: str, more: str) -> None:
        line = f"{part:<24} {state:<20} {more}".rstrip() if part else state
        if as_json:
            facts = {"part": part, "state": state, "more": more} if part else {"says": state.strip()}
            line = json.dumps(facts, ensure_ascii=False)
        with suppress(OSError):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    return say


def _plain(data: Any) -> Any:
    if is_dataclass(data) and not isinstance(data, type):
        return asdict(data)
    return [_plain(item) for item in data] if isinstance(data, list) else data


def _text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def table(rows: Sequence[dict[str, str]], *, right: Iterable[str] = (), wide: str | None = None) -> list[str]:
    """Lines under bold headings. On a terminal the wide column is cut to fit; in a pipe nothing is."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        return []
    made = Table(box=None, pad_edge=False, header_style="bold")
    right = set(right)
    for name in rows[0]:
        made.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=True,
            overflow="ellipsis" if name == wide else "fold",
            min_width=None if name == wide else max(len(name), *(len(row[name]) for row in rows)),
        )
    for row in rows:
        # Text, not str: a task's error may look like Rich's markup.
        made.add_row(*(Text(value) for value in row.values()))
    console = Console(width=None if sys.stdout.isatty() else 10_000)
    with console.capture() as captured:
        console.print(made)
    return [line.rstrip() for line in captured.get().splitlines()]


def shown(value: Any) -> str:
    """One value for a person: JSON for structures, text for the rest, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, dict | list):
        return json.dumps(value, default=_text, ensure_ascii=False)
    return _text(value)
