"""What a check found: counters of what must not happen, figures for people, a failure in words per miss."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass
class Counts:
    lost: int = 0  #: accepted, and neither done nor reported
    doubled: int = 0  #: effects made more than once, each copy counted
    unexpected: int = 0  #: anything else that no rule allows
    unknown: int = 0  #: reported as unknown, in the task and in its send

    def add(self, other: Counts) -> None:
        self.lost += other.lost
        self.doubled += other.doubled
        self.unexpected += other.unexpected
        self.unknown += other.unknown


@dataclass
class Verdict:
    name: str
    counts: Counts = field(default_factory=Counts)
    figures: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)
    worker_pids: list[int] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def result(self) -> str:
        return "passed" if self.passed else "FAILED"

    def require(self, holds: bool, failure: str) -> None:
        if not holds:
            self.failures.append(failure)

    def count(self, found: Counts, remarks: Iterable[str] = ()) -> None:
        """Nothing lost, doubled or unexpected is ever allowed; what is unknown is each check's own matter."""
        self.counts.add(found)
        wrong = [f"{getattr(found, name)} {name}" for name in ("lost", "doubled", "unexpected")]
        self.failures[:0] = [words for words in wrong if not words.startswith("0 ")] + list(remarks)


@dataclass(frozen=True)
class Row:
    """One accepted task at the end of the run."""

    key: str
    kind: str  #: how its effect was to be made: plain, intent, transaction
    status: str
    send: str | None  #: state of its send; None: there is none


def compare(accepted: Iterable[str], rows: Iterable[Row], times_made: Mapping[str, int]) -> tuple[Counts, list[str]]:
    """Accepted tasks against their rows and their effects; the first disagreements in words."""
    by_key = {row.key: row for row in rows}
    made = dict(times_made)
    found = Counts()
    remarks = []
    for key in accepted:
        row, times = by_key.get(key), made.pop(key, 0)
        outcome = _outcome(row, times)
        if outcome != "done":
            setattr(found, outcome, getattr(found, outcome) + 1)
        found.doubled += max(0, times - 1)
        if outcome in ("lost", "unexpected") or times > 1:
            said = f"{row.status}, send {row.send}" if row else "no row"
            remarks.append(f"task {key}: made {times} times, {said}")
    for key, times in made.items():
        found.unexpected += times
        remarks.append(f"effect {key}: made {times} times, never asked for")
    return found, shortened(remarks)


def shortened(lines: list[str], most: int = 5) -> list[str]:
    return lines if len(lines) <= most else [*lines[:most], f"and {len(lines) - most} more"]


def _outcome(row: Row | None, times_made: int) -> Literal["done", "lost", "unknown", "unexpected"]:
    match row:
        case None | Row(status="pending" | "in_progress"):
            return "lost"
        case Row(status="completed") if times_made == 0:
            return "lost"
        case Row(status="completed", kind="plain" | "transaction") | Row(status="completed", send="sent"):
            return "done"
        case Row(status="unknown", send="unknown"):
            return "unknown"
        case _:
            return "unexpected"
