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
from sqlalchemy.exc import DBAPIError

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


_MARK = text("""
with c as materialized (select x.id from unnest(array[1,2,3,4,5,6,7,8,9]::smallint[]) p cross join lateral
   (select id from tasks where queue = :queue and priority = p and status = 'pending'
    and wake_at <= (select clock_timestamp()) order by wake_at limit :n for update skip locked) x limit :n)
update tasks t set wake_at = clock_timestamp() + :lease * interval '1 second' from c where t.id = c.id
returning t.id, t.task_name, t.user_id, t.priority, t.run_at
""")
_DUE = text("""
select q.queue from unnest(cast(:queues as text[])) q(queue)
where exists (select from tasks t where t.queue = q.queue and t.status = 'pending'
              and t.priority between 1 and 9 and t.wake_at <= (select clock_timestamp()))
  and not exists (select from queue_states s where s.queue = q.queue and s.paused_at is not null
                  and (s.paused_until is null or s.paused_until > clock_timestamp()))
""")
_LEAD = text("""
insert into leaders as l (role, worker) values ('relay', :me)
on conflict (role) do update set worker = :me, since = clock_timestamp()
where l.worker = :me or not exists (select from workers w where w.id = l.worker and not w.dead)
returning l.since >= clock_timestamp() - interval '1 second' as fresh
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
        size = min(LARGEST_WINDOW, max(SMALLEST_WINDOW, int(self.drain * WINDOW_SECONDS)))
        if self.policy.rate is not None:
            size = min(size, max(1, int(self.policy.rate)))
        if self.policy.concurrency is not None:
            size = min(size, max(2, 2 * self.policy.concurrency))
        return max(0, size - ready)

    def published(self, count: int) -> None:
        self._published += count


class Relay(threading.Thread):
    def __init__(
        self,
        database: Database,
        publisher: Publisher,
        held: Held,
        reaper: Reaper,
        me: uuid.UUID,
        lease: float,
    ) -> None:
        super().__init__(name="relay", daemon=True)
        self.database, self.publisher, self.held = database, publisher, held
        self.reaper, self.me, self.lease = reaper, me, lease
        self.leading = False
        self._stopping = threading.Event()
        self._windows = {name: Window(policy) for name, policy in POLICIES.items()}
        self._judged = 0.0
        self._listening: psycopg.Connection[Any] | None = None

    def run(self) -> None:
        failures = pauses()
        while not self._stopping.is_set():
            try:
                busy = self.step()
                failures = pauses()
                if not busy:
                    self._sleep(IDLE_SECONDS * (0.75 + random.random() / 2))
            except Exception as error:
                if not (isinstance(error, DBAPIError) and is_passing(error)):
                    log.warning("the relay stumbled", error=repr(error))
                self._listening = None
                self._stopping.wait(next(failures))

    def step(self) -> bool:
        """One round; whether there may be more to do at once."""
        with self.database.statement() as connection:
            if time.monotonic() - self._judged >= min(JUDGE_SECONDS, self.lease / 4):
                self._judged = time.monotonic()
                self.reaper.judge(connection)
                self._lead(connection)
                if self.leading or not self.publisher.shared:
                    self.reaper.sweep(connection)
                    tasks.expire(connection)
            if not self.leading and self.publisher.shared:
                return False
            due = list(connection.execute(_DUE, {"queues": list(POLICIES)}).scalars())
        return any([self._publish(queue) for queue in due])

    def _lead(self, connection: Connection) -> None:
        if not self.publisher.shared:
            return
        fresh = connection.execute(_LEAD, {"me": self.me}).scalar()
        was, self.leading = self.leading, fresh is not None
        if self.leading and not was:
            log.info("relaying", worker=str(self.me))
            # What the old leader had marked may never have been published.
            connection.execute(
                text(
                    "update tasks set wake_at = run_at where status = 'pending' and queue = any(cast(:queues as text[]))"
                    " and priority between 1 and 9 and wake_at > clock_timestamp() and run_at <= clock_timestamp()"
                ),
                {"queues": list(POLICIES)},
            )

    def _publish(self, queue: str) -> bool:
        room = self._windows[queue].room(self.publisher.ready_count(queue))
        if room == 0:
            time.sleep(0.005)
            return True
        with self.database.statement() as connection:
            rows = connection.execute(_MARK, {"queue": queue, "n": room, "lease": self.lease}).all()
        if not rows:
            return False
        rows.sort(key=lambda row: (row.priority, row.run_at, row.id))
        try:
            self.publisher.publish(queue, [(row.id, row.task_name, row.user_id) for row in rows])
        except Exception:
            with self.database.statement() as connection:
                tasks.wake(connection, [row.id for row in rows])
            raise
        self._windows[queue].published(len(rows))
        return len(rows) == room

    def _sleep(self, seconds: float) -> None:
        """Wait for a hint; a lost one costs no more than the idle time."""
        if self._listening is None or self._listening.closed:
            self._listening = self.database.connect()
            self._listening.autocommit = True
            self._listening.execute(f"listen {WAKE_CHANNEL}")  # type: ignore[arg-type]
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
