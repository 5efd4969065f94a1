"""The short cut: a single due task goes to the broker at once, while its queue is shallow; the relay does all the rest.

Nobody waits for it. Its row is committed and marked as published for a lease, so what gets lost here is found by the
relay; what is known to have failed is given to the relay at once.
"""

from __future__ import annotations

import atexit
import queue as queues
import threading
import time
from dataclasses import dataclass

import structlog

from chronos.db import Database, DatabaseTrouble
from chronos.engine import tasks
from chronos.engine.transports import Publisher, Wakeup

log = structlog.get_logger("chronos.shortcut")

#: Deeper queues are the relay's: it knows priorities.
DEEPEST = 50
#: Seconds between two looks at the depth of a queue, and before a closed short cut is tried again.
LOOK_SECONDS = 0.2
FLUSH_SECONDS = 2.0


@dataclass
class _Way:
    """What is known of one queue. Open until seen otherwise."""

    open: bool = True
    looked_at: float = 0.0


class ShortCut(threading.Thread):
    def __init__(self, publisher: Publisher, database: Database) -> None:
        super().__init__(name="short cut", daemon=True)
        self.publisher, self.database = publisher, database
        self._ways: dict[str, _Way] = {}
        self._waiting: queues.SimpleQueue[tuple[str, Wakeup | None] | None] = queues.SimpleQueue()
        self.start()
        # A command that submits and ends must not leave its wake-up in the memory that ends with it.
        atexit.register(self.close)

    def open_for(self, queue: str) -> bool:
        """Without any I/O. False asks the thread to look again, for the next one."""
        way = self._ways.setdefault(queue, _Way())
        if not way.open and time.monotonic() - way.looked_at > LOOK_SECONDS:
            way.looked_at = time.monotonic()
            self._waiting.put((queue, None))
        return way.open

    def take(self, queue: str, wakeup: Wakeup) -> None:
        self._waiting.put((queue, wakeup))

    def close(self) -> None:
        atexit.unregister(self.close)
        self._waiting.put(None)
        self.join(FLUSH_SECONDS)

    def run(self) -> None:
        stopping = False
        while not stopping:
            groups: dict[str, list[Wakeup]] = {}
            item = self._waiting.get()
            while True:
                if item is None:
                    stopping = True
                    break
                group = groups.setdefault(item[0], [])
                if item[1] is not None:
                    group.append(item[1])
                try:
                    item = self._waiting.get_nowait()
                except queues.Empty:
                    break
            for queue, wakeups in groups.items():
                self._publish(queue, wakeups)
        self.publisher.close()

    def _publish(self, queue: str, wakeups: list[Wakeup]) -> None:
        way = self._ways.setdefault(queue, _Way())
        try:
            if wakeups:
                self.publisher.publish(queue, wakeups)
            if not way.open or time.monotonic() - way.looked_at > LOOK_SECONDS:
                way.looked_at = time.monotonic()
                way.open = self.publisher.ready_count(queue) < DEEPEST
        except Exception as error:
            way.open, way.looked_at = False, time.monotonic()
            log.info("left to the relay", queue=queue, tasks=len(wakeups), error=repr(error))
            self._leave_to_relay(wakeups)

    def _leave_to_relay(self, wakeups: list[Wakeup]) -> None:
        try:
            with self.database.statement() as connection:
                tasks.wake(connection, [wakeup[0] for wakeup in wakeups])
        except DatabaseTrouble as error:
            log.info("the relay will find them a lease later", tasks=len(wakeups), error=repr(error))
