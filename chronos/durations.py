"""Spans of time as people write and read them: 10m, 2h; "in 8 s", "3 min ago"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from chronos.errors import BadInput

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
#: Longer spans are surely slips of the hand, and datetime would overflow at some point.
LONGEST = timedelta(days=3660)


def parse(value: str) -> timedelta:
    """30s, 10m, 2h or 1d; BadInput for anything else."""
    count, unit = value[:-1], value[-1:]
    if unit not in UNITS or not (count.isascii() and count.isdigit()):
        raise BadInput(f"{value!r} is no duration: write 30s, 10m, 2h or 1d")
    if len(count) > 12 or (seconds := int(count) * UNITS[unit]) > LONGEST.total_seconds():
        raise BadInput(f"{value} is longer than {LONGEST.days} days")
    if seconds == 0:
        raise BadInput(f"{value} is no time at all: write 30s, 10m, 2h or 1d")
    return timedelta(seconds=seconds)


def moment(value: str) -> datetime:
    """An ISO time with its zone, or a duration from now."""
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        try:
            return datetime.now(UTC) + parse(value)
        except BadInput:
            raise BadInput(
                f"{value!r} is no time: write 10m, or a date with its zone such as 2030-01-31T18:30+03:00"
            ) from None
    if found.tzinfo is None:
        raise BadInput(f"{value} has no time zone: write {value}+00:00, or a duration such as 10m")
    return found


def in_words(seconds: float) -> str:
    """A length of time, short: 0.3 s, 8 s, 12 min, 3 h 20 min, 5 days."""
    if seconds < 0.0005:
        return "0 s"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    if whole < 600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if whole < 3600:
        return f"{round(whole / 60)} min"
    if whole < 86400:
        hours, minutes = whole // 3600, whole % 3600 // 60
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = whole // 86400, whole % 86400 // 3600
    plural = "" if days == 1 else "s"
    return f"{days} day{plural} {hours} h" if hours and days < 7 else f"{days} day{plural}"


def relative(moment_: datetime, now: datetime) -> str:
    """in 8 s; 3 min ago; now."""
    seconds = round((moment_ - now).total_seconds())
    if seconds == 0:
        return "now"
    return f"in {in_words(seconds)}" if seconds > 0 else f"{in_words(-seconds)} ago"


def clock(moment_: datetime, now: datetime) -> str:
    """The time of day here, with the date unless that is today."""
    here, today = moment_.astimezone(), now.astimezone()
    return f"{here:%H:%M:%S}" if here.date() == today.date() else f"{here:%Y-%m-%d %H:%M:%S}"
