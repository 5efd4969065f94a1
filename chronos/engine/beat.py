"""A worker lives by its beat: one row per process, one thread, one small statement per beat.

The beat also audits: a row that the table says is ours and that we do not hold (a consumer was replaced with a
claimed batch in its buffer) is handed back. A worker that learns that it is dead exits for its supervisor.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable

import psutil
import structlog
import uuid_utils.compat
from sqlalchemy import text

from chronos.db import Database, DatabaseTrouble, is_passing
from chronos.engine import tasks
from chronos.engine.held import Held
from chronos.engine.tasks import Claimed

log = structlog.get_logger("chronos.beat")

#: Above this part of the lease without a good beat nothing new is started.
STALE = 0.8


def this_host() -> str:
    """Names the space in which a pid means one process: host, boot and pid namespace."""
    boot, namespace = "", ""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        boot = str(psutil.boot_time())
    return f"{socket.gethostname()}/{boot}/{namespace}"


def process_start(pid: int) -> str | None:
    """With the pid exactly one process; None: there is none."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return f"{process.create_time():.2f}"
    except psutil.Error:
        return None


class Beat(threading.Thread):
    def __init__(self, database: Database, held: Held, lease: float, name: str, on_dead: Callable[[str], None]) -> None:
        super().__init__(name="beat", daemon=True)
        self.id: uuid.UUID = uuid_utils.compat.uuid7()
        self.database = database
        self.held = held
        self.lease = lease
        self.worker_name = name
        self.on_dead = on_dead
        self.host = this_host()
        #: Threads without which this worker would take work and never be done with it.
        self.needed: list[threading.Thread] = []
        self._good = 0.0
        self._stopping = threading.Event()
        self._fresh = threading.Condition()

    def register(self, queues: list[str]) -> None:
        """Write this worker's row, waiting for PostgreSQL as long as it takes."""

        def write() -> None:
            with self.database.statement() as connection:
                connection.execute(
                    text(
                        "insert into workers (id, name, host, pid, process_start, queues, threads)"
                        " values (:id, :name, :host, :pid, :start, cast(:queues as jsonb), :threads)"
                        " on conflict (id) do nothing"
                    ),
                    {
                        "id": self.id,
                        "name": self.worker_name,
                        "host": self.host,
                        "pid": os.getpid(),
                        "start": process_start(os.getpid()) or "",
                        "queues": "[" + ",".join(f'"{queue}"' for queue in queues) + "]",
                        "threads": self.held.threads,
                    },
                )

        self.database.persist(write)
        self._good = time.monotonic()

    def run(self) -> None:
        while not self._stopping.wait(self.lease / 3):
            try:
                self.beat()
            except Exception as error:
                # Whatever it was: a worker without a beat is dead for the others.
                if not is_passing(error):
                    log.exception("the beat failed")
                self._stopping.wait(min(0.5, self.lease / 10))

    def beat(self) -> None:
        for thread in self.needed:
            if not thread.is_alive():
                self.on_dead(f"its {thread.name} thread has died")
        before = time.monotonic()
        with self.database.statement() as connection:
            alive = connection.execute(
                text("update workers set beat_at = clock_timestamp() where id = :id and not dead returning id"),
                {"id": self.id},
            ).scalar()
            if alive is None:
                self.on_dead("another process found this worker without a beat")
                return
            with self._fresh:
                self._good = before
                self._fresh.notify_all()
            for row in tasks.running_of(connection, self.id):
                if row.cancelled:
                    self.held.cancel(row.id)
                if not self.held.holds(row.id, row.token):
                    lost = Claimed(
                        row.id, row.token, row.queue, row.task_name, row.attempt, row.max_attempts,
                        {}, None, None, None, None,
                    )  # fmt: skip
                    tasks.hand_back(connection, lost, "claimed by a consumer that was replaced")

    @property
    def stale(self) -> bool:
        return time.monotonic() - self._good > self.lease * STALE

    def wait_until_fresh(self) -> None:
        """Block while this worker may be dead for the others: nothing starts in that time."""
        with self._fresh:
            while self.stale and not self._stopping.is_set():
                self._fresh.wait(0.2)

    def stop(self, why: str = "stopped") -> None:
        """Mark the row dead, the beat first: a beat that is too late must not revive it."""
        self._stopping.set()
        if self.is_alive():
            self.join(2)
        try:
            with self.database.statement() as connection:
                connection.execute(
                    text("update workers set dead = true, death = :why where id = :id and not dead"),
                    {"id": self.id, "why": why},
                )
        except DatabaseTrouble:
            log.warning("could not say goodbye to PostgreSQL; the reaper will notice")
        self.database.close()
