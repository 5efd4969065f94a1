"""One router per feature; `all_of_them` in the order in which they are asked."""

from __future__ import annotations

from aiogram import Router


def all_of_them() -> list[Router]:
    """Fresh ones: a router belongs to one dispatcher."""
    from chronos.bot.routers import (
        access,
        cancelling,
        dead_letters,
        people,
        queues,
        report,
        rest,
        settings,
        tasks,
        zone,
    )

    features = (people, access, report, tasks, cancelling, queues, dead_letters, settings, zone, rest)
    return [feature.router() for feature in features]
