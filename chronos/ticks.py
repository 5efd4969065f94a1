"""What a periodiq process does, for a program that has none: call the periodic actors of each new minute.

By the same cron specs, and as there each call only submits a task, so a tick that comes twice costs nothing.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from chronos.actors import broker


class Ticks:
    def __init__(self) -> None:
        self._minute = int(time.time() // 60)

    def give(self) -> None:
        """Once per minute, however often it is called. A minute that fails is tried again with the next call."""
        minute = int(time.time() // 60)
        if minute != self._minute:
            give_those_of(datetime.fromtimestamp(minute * 60, UTC))
            self._minute = minute


def give_those_of(minute: datetime) -> None:
    for actor in broker.actors.values():
        if "periodic" in actor.options and actor.options["periodic"].validate(minute):
            actor.fn()
