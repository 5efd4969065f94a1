"""Finds dead workers and takes what they ran. Its risk: to rob a worker that lives.

So it never judges by a clock: dead is a worker whose process is gone from this very host, or whose beat this process
has itself seen unchanged for a lease while it polled without a gap (after an outage everybody gets a new lease).
"""

from __future__ import annotations

import time
import uuid
from datetime import datetime

import structlog
from sqlalchemy import Connection, text

from chronos.engine import tasks
from chronos.engine.beat import process_start

log = structlog.get_logger("chronos.reaper")


class Reaper:
    def __init__(self, me: uuid.UUID, host: str, lease: float) -> None:
        self.me = me
        self.host = host
        self.lease = lease
        self._seen: dict[uuid.UUID, tuple[datetime, float]] = {}
        self._polled = 0.0

    def judge(self, connection: Connection) -> int:
        """Mark the dead; how many."""
        rows = connection.execute(
            text("select id, name, host, pid, process_start, beat_at from workers where not dead and id <> :me"),
            {"me": self.me},
        ).all()
        now = time.monotonic()
        # By the time of the answer, not of the question: PostgreSQL may have stalled in between, for everybody.
        if now - self._polled > self.lease / 2:
            self._seen.clear()
        self._polled = now
        dead: list[tuple[uuid.UUID, str, datetime | None]] = []
        for row in rows:
            beat, since = self._seen.get(row.id, (None, now))
            if beat != row.beat_at:
                since = now
            self._seen[row.id] = (row.beat_at, since)
            if row.host == self.host and process_start(row.pid) != row.process_start:
                dead.append((row.id, "its process is gone", None))
            elif now - since > self.lease:
                dead.append((row.id, "no beat for a lease", row.beat_at))
        for id_, why, beat_at in dead:
            marked = connection.execute(
                text(
                    "update workers set dead = true, death = :why where id = :id and not dead"
                    " and (cast(:beat as timestamptz) is null or beat_at = :beat) returning name"
                ),
                {"id": id_, "why": why, "beat": beat_at},
            ).scalar()
            self._seen.pop(id_, None)
            if marked:
                log.warning("worker is dead", worker=str(id_), name=marked, why=why)
        return len(dead)

    def sweep(self, connection: Connection) -> list[tuple[uuid.UUID, str]]:
        taken: list[tuple[uuid.UUID, str]] = []
        while True:
            batch = tasks.reap(connection)
            taken += batch
            if len(batch) < tasks.SWEEP_ROWS:
                break
        for id_, status in taken:
            log.warning("task of a dead worker", task=str(id_), now=status)
        return taken
