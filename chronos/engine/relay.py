"""Moves wake-ups of due rows to the broker; one process leads. A rule: mark, COMMIT, publish.

A message that gets lost is published again within a lease, whatever lost it, for its row is still pending then.
In every process the same loop looks for dead workers, once a second.
"""

from __future__ import annotations

import random
import threading
import time
import uuid
from typing import Any

import psycopg
import structlog
from sqlalchemy import Connection, text

from chronos.db import WAKE_CHANNEL, Database, is_passing, pauses
from chronos.engine import tasks
from chronos.engine.held import Held
from chronos.engine.reaper import Reaper
from chronos.engine.transports import Publisher
from chronos.queues import POLICIES, QueuePolicy

log = structlog.get_logger("chronos.relay")

WINDOW_SECONDS, SMALLEST_WINDOW, LARGEST_WINDOW = 0.5, 50, 2000
IDLE_SECONDS = 0.5
JUDGE_SECONDS = 1.0

_LEAD = text("""
insert into leaders as l (role, worker) values ('relay', :me)
on conflict (role) do update set worker = :me, since = clock_timestamp()
where l.worker = :me or not exists (select from workers w where w.id = l.worker and not w.dead)
returning l.worker
""")


class Window:
    """How many messages of a queue may be ready in the broker: half a second of its measured drain."""

    def __init__(self, policy: QueuePolicy) -> None:
        self.policy = policy
        self.drain = 0.0
        self._last: tuple[float, int] | None = None
        self._published = 0

    def room(self, ready: int) -> int:
        now = time.monotonic()
        if self._last is not None:
            then, was = self._last
            rate = max(0.0, (was + self._published - ready) / max(1e-3, now - then))
            self.drain = rate if rate > self.drain else self.drain * 0.9 + rate * 0.1
        self._last, self._published = (now, ready), 0
        return max(0, self.size - ready)

    @property
    def size(self) -> int:
        size = min(LARGEST_WINDOW, max(SMALLEST_WINDOW, int(self.drain * WINDOW_SECONDS)))
        # Of a limited queue only what can start within a second.
        if self.policy.rate is not None:
            size = min(size, max(1, int(self.policy.rate)))
        if self.policy.concurrency is not None:
            size = min(size, 2 * self.policy.concurrency)
        return size

    @property
    def next_look(self) -> float:
        """Seconds until a quarter of a full window has drained."""
        return min(0.05, max(0.005, self.size / 4 / max(1.0, self.drain)))

    def published(self, count: int) -> None:
        self._published += count


class Relay(threading.Thread):
    def __init__(
        self, database: Database, publisher: Publisher, held: Held, reaper: Reaper, me: uuid.UUID, lease: float
    ) -> None:
        super().__init__(name="relay", daemon=True)
        self.database, self.publisher, self.held = database, publisher, held
        self.reaper, self.me, self.lease = reaper, me, lease
        self.leading = not publisher.shared
        self._stopping = threading.Event()
        self._windows = {name: Window(policy) for name, policy in POLICIES.items()}
        self._judged = 0.0
        #: What is marked as published may not be in the broker.
        self._marks_doubtful = True
        self._listening: psycopg.Connection[Any] | None = None

    def run(self) -> None:
        failures = pauses()
        while not self._stopping.is_set():
            try:
                wait = self.step()
                failures = pauses()
                self._listen(wait)
            except Exception as error:
                # This loop is everybody's way back to work: whatever went wrong, it goes on.
                if not is_passing(error):
                    log.warning("the relay stumbled", error=repr(error))
                self._marks_doubtful = True
                self._listening = None
                self._stopping.wait(next(failures))

    def step(self) -> float:
        """One round; seconds until the next one is worth while."""
        # Well below half a lease: a reaper that looks more seldom begins its observation anew each time.
        idle = min(IDLE_SECONDS, self.lease / 8) * (0.75 + random.random() / 2)
        with self.database.statement() as connection:
            if time.monotonic() - self._judged >= min(JUDGE_SECONDS, self.lease / 8):
                self._judged = time.monotonic()
                self.reaper.judge(connection)
                self._lead(connection)
                if self.leading:
                    self.reaper.sweep(connection)
                    tasks.expire(connection)
            if not self.leading:
                return idle
            if self._marks_doubtful and self.publisher.shared:
                tasks.wake_marked(connection)
            self._marks_doubtful = False
            due = tasks.due_queues(connection)
        return min([idle, *(self._publish(queue) for queue in due)])

    def _lead(self, connection: Connection) -> None:
        """A row held by a living worker, so that a stopped process cannot keep it."""
        if not self.publisher.shared:
            return
        was, self.leading = self.leading, connection.execute(_LEAD, {"me": self.me}).scalar() is not None
        if self.leading and not was:
            log.info("relaying", worker=str(self.me))
            self._marks_doubtful = True

    def _publish(self, queue: str) -> float:
        """Fill the queue's window; seconds until it may have room again."""
        window = self._windows[queue]
        room = window.room(self.publisher.ready_count(queue))
        if room == 0:
            return window.next_look
        with self.database.statement() as connection:
            marked = tasks.mark_published(connection, queue, room, self.lease)
        if not marked:
            return IDLE_SECONDS
        try:
            self.publisher.publish(queue, marked)
        except Exception:
            with self.database.statement() as connection:
                tasks.wake(connection, [wakeup[0] for wakeup in marked])
            raise
        window.published(len(marked))
        return window.next_look if len(marked) == room else IDLE_SECONDS

    def _listen(self, seconds: float) -> None:
        """Wait for a hint; a lost one costs no more than the idle time."""
        if self._listening is None or self._listening.closed:
            self._listening = self.database.connect()
            self._listening.autocommit = True
            self._listening.execute(f"listen {WAKE_CHANNEL}")
            return
        for note in self._listening.notifies(timeout=seconds, stop_after=1):
            verb, _, what = note.payload.partition(" ")
            if verb == "cancel":
                self.held.cancel(uuid.UUID(what))

    def stop(self) -> None:
        self._stopping.set()
        if self.is_alive():
            self.join(3)
        self.publisher.close()
        if self._listening is not None:
            self._listening.close()
