"""Moments as a person reads them in a list: how long ago, without a clock whose zone they have not told us."""

from __future__ import annotations

from datetime import UTC, datetime

from chronos.bot.talk import Talk
from chronos.language import language_of


def ago(talk: Talk, moment: datetime, now: datetime | None = None) -> str:
    seconds = ((now or datetime.now(UTC)) - moment).total_seconds()
    if abs(seconds) < 2:
        return talk.plain("now")
    span = language_of(talk.language).duration(abs(seconds))
    return talk.plain("ago" if seconds > 0 else "in", span=span)
