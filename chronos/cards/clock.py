"""Moments on the reader's own clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from chronos.language import language_of


def moment_of(moment: datetime, now: datetime, zone: str | None, language: str) -> str:
    """With its day when that is not today, and with UTC when we do not know the reader's time zone."""
    speak, here = language_of(language), ZoneInfo(zone) if zone else UTC
    local = moment.astimezone(here)
    near = moment - now < timedelta(hours=1)
    clock = (speak.second(local) if near else speak.clock(local)) + ("" if zone else " UTC")
    if local.date() == now.astimezone(here).date():
        return clock
    return f"{speak.day_and_month(local.date())}, {clock}"
