"""The figures of a report, and nothing about how they look. Kept with the task, so a report can be made again."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

Outcome = Literal["completed", "failed", "unknown", "expired", "cancelled"]
Unit = Literal["hour", "day", "week"]
OUTCOMES: tuple[Outcome, ...] = ("completed", "failed", "unknown", "expired", "cancelled")


class Figures(BaseModel):
    model_config = ConfigDict(frozen=True)


class Counts(Figures):
    """How tasks ended."""

    completed: int = 0
    failed: int = 0
    unknown: int = 0
    expired: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        return self.completed + self.judged_badly + self.cancelled

    @property
    def judged_badly(self) -> int:
        return self.failed + self.unknown + self.expired

    @property
    def share(self) -> float | None:
        """Of what had to work, what did; what somebody cancelled had not to. None: nothing had to."""
        judged = self.completed + self.judged_badly
        return self.completed / judged if judged else None


class Durations(Figures):
    """Seconds that the completed runs took."""

    median: float
    p95: float


class Step(Figures):
    """One bar: an hour of a single day, a day, or a week of a long period."""

    start: datetime  #: the wall clock of the report's zone
    counts: Counts


class Queue(Figures):
    name: str
    counts: Counts
    durations: Durations | None


class Cause(Figures):
    """What failed alike."""

    queue: str
    task_name: str
    error_class: str | None
    words: str
    number: int


class Sends(Figures):
    sent: int = 0
    not_sent: int = 0
    unknown: int = 0
    under_way: int = 0

    @property
    def total(self) -> int:
        return self.sent + self.not_sent + self.unknown + self.under_way


class Activity(Figures):
    period: str  #: as it was asked for: today, 7d, 2026-11-01..2026-11-15
    first: date
    last: date
    zone: str
    made_at: datetime
    unit: Unit  #: of a bar
    counts: Counts
    before: Counts  #: of as many days before
    steps: list[Step]
    queues: list[Queue]  #: the busiest first
    causes: list[Cause]  #: the most frequent first, at most CAUSES
    sends: Sends
    waiting_letters: int  #: dead letters that wait for a decision, of whatever age
    sample: bool  #: sample data is among the figures

    @property
    def days(self) -> int:
        return (self.last - self.first).days + 1

    @property
    def slowest(self) -> Queue | None:
        """By the median of a typical run. A queue of very few runs is no typical one while there are others."""
        measured = [queue for queue in self.queues if queue.durations is not None]
        enough = [queue for queue in measured if queue.counts.completed >= 5] or measured
        return max(enough, key=lambda queue: queue.durations.median if queue.durations else 0.0, default=None)
