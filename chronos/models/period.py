"""A span of whole days as people and buttons name it: today, 7d, 30d, 2026-11-18, 2026-11-01..2026-11-15."""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from datetime import date, timedelta

from chronos.errors import BadInput

#: What deleted rows had counted for is kept for twice as long (chronos/housekeeping.py).
LONGEST_DAYS = 200

_FORMS = "today, 7d, 30d, a date such as 2026-11-18, or two of them: 2026-11-01..2026-11-15"


@dataclass(frozen=True)
class Period:
    """So many days up to today, or from one date to another, both included. The days are those of a time zone."""

    days: int | None = None
    first: date | None = None
    last: date | None = None

    @classmethod
    def parse(cls, text: str) -> Period:
        given = text.strip().lower()
        if given == "today":
            return cls(days=1)
        if re.fullmatch(r"[0-9]{1,6}d", given):
            days = int(given[:-1])
            if not 1 <= days <= LONGEST_DAYS:
                raise BadInput(
                    f"a report covers 1 to {LONGEST_DAYS} days, not {days}", "period_length", most=LONGEST_DAYS
                )
            return cls(days=days)
        first, dots, last = given.partition("..")
        begin = _date(first, text)
        end = _date(last, text) if dots else begin
        if end < begin:
            raise BadInput(f"{end} is before {begin}: write the earlier date first", "period_backwards")
        if (end - begin).days >= LONGEST_DAYS:
            raise BadInput(
                f"a report covers 1 to {LONGEST_DAYS} days, not {(end - begin).days + 1}",
                "period_length",
                most=LONGEST_DAYS,
            )
        return cls(first=begin, last=end)

    def dates(self, today: date) -> tuple[date, date]:
        """The first and the last day; BadInput when nothing can have happened yet."""
        if self.days is not None:
            return today - timedelta(days=self.days - 1), today
        assert self.first is not None and self.last is not None  # noqa: S101
        if self.first > today:
            raise BadInput(f"{self.first} is in the future: today is {today}", "period_future")
        return self.first, min(self.last, today)

    def __str__(self) -> str:
        if self.days is not None:
            return "today" if self.days == 1 else f"{self.days}d"
        return f"{self.first}" if self.first == self.last else f"{self.first}..{self.last}"


def _date(text: str, whole: str) -> date:
    try:
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text.strip()):
            raise ValueError
        found = date.fromisoformat(text.strip())
    except ValueError:
        raise BadInput(f"{whole!r} is no period: write {_FORMS}", "no_period", given=whole) from None
    if not 2000 <= found.year <= 2999:
        raise BadInput(f"{found} is no date of a report: write {_FORMS}", "no_period", given=whole)
    return found


def checked_zone(name: str) -> str:
    """The name of a time zone, if there is one of that name."""
    try:
        if not re.fullmatch(r"[A-Za-z0-9_+/-]{1,64}", name):
            raise ValueError
        return zoneinfo.ZoneInfo(name).key
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise BadInput(
            f"{name!r} is no time zone: write it as Europe/Moscow, Asia/Almaty or UTC", "no_zone", given=name
        ) from None
