"""Every long-lived object of a process, built once and lazily; and how the process lives and ends."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache

import structlog
from sqlalchemy import Connection
from sqlalchemy.orm import Session

from chronos import running
from chronos.config import Settings, settings
from chronos.db import Database
from chronos.engine import schema, tasks
from chronos.engine.beat import Beat
from chronos.engine.endings import Ending
from chronos.engine.finisher import Finisher
from chronos.engine.held import Held
from chronos.engine.memory import MemoryTransport
from chronos.engine.rabbitmq import RabbitTransport
from chronos.engine.reaper import Reaper
from chronos.engine.relay import Relay
from chronos.engine.shortcut import ShortCut
from chronos.engine.tasks import Claimed, Submitted
from chronos.engine.transports import Transport
from chronos.errors import BadInput, ChronosError
from chronos.models.new_task import NewTask
from chronos.queues import policy_of

log = structlog.get_logger("chronos")

#: Exit codes: 2 = wrong use or settings; 3 = the others think that we are dead, or a run hangs: restart us.
EXIT_WRONG, EXIT_RESTART = 2, 3

#: Of one worker process: finisher, relay and claims. The beat has one of its own.
LOOP_CONNECTIONS = 4


def database_url(configuration: Settings) -> str:
    if configuration.database_url is not None:
        return configuration.database_url.get_secret_value()
    raise BadInput(
        "CHRONOS_DATABASE_URL is not set and no `chronos up` runs in "
        f"{configuration.data_dir}: set it, or start one with `chronos up`"
    )


class Runtime:
    def __init__(self, configuration: Settings) -> None:
        self.settings = configuration = running.completed(configuration)
        url = database_url(configuration)
        #: For actors and front doors.
        self.database = Database(url, configuration)
        #: For the loops of a worker, so that actors that hold every connection cannot stop them.
        self.loops = Database(url, configuration, connections=LOOP_CONNECTIONS, by_index=True)
        self.amqp_url = configuration.amqp_url.get_secret_value() if configuration.amqp_url else None
        self.transport: Transport = RabbitTransport(self.amqp_url) if self.amqp_url else MemoryTransport()
        self.held = Held()
        self.beat: Beat | None = None
        self.finisher: Finisher | None = None
        self.relay: Relay | None = None
        self._short_cut: ShortCut | None = None
        self._making = threading.Lock()
        self._ending = threading.Lock()

    # -- front doors

    def submit(self, *new: NewTask, session: Connection | Session | None = None) -> list[Submitted]:
        """Accept tasks, all or none: when this returns they are durable; it does not wait for the broker.

        With a `session` they belong to its transaction, and are accepted when that commits.
        """
        rows = tasks.prepare(new, self.settings.max_payload_bytes)
        if session is not None:
            return tasks.submit(session if isinstance(session, Connection) else session.connection(), rows)
        short_cut = self._short_cut_for(new)
        if short_cut is None:
            return self._write(lambda: self._submit_in_transaction(rows))
        done = self._write(lambda: self._submit_one(rows))
        if done[0].created:
            short_cut.take(new[0].queue, (done[0].id, new[0].task_name, new[0].user_id))
        return done

    def _submit_in_transaction(self, rows: list[tasks.Row]) -> list[Submitted]:
        with self.database.transaction() as connection:
            return tasks.submit(connection, rows)

    def _submit_one(self, rows: list[tasks.Row]) -> list[Submitted]:
        with self.database.statement() as connection:
            return tasks.submit(connection, rows, hold=self.settings.lease, notify=False)

    def _write(self, work: Callable[[], list[Submitted]]) -> list[Submitted]:
        return self.database.persist(work, deadline=self.settings.connect_timeout_seconds)

    def _short_cut_for(self, new: Sequence[NewTask]) -> ShortCut | None:
        """The short cut when it is open to these tasks: a single one, due, on RabbitMQ, in a queue without limits."""
        if self.amqp_url is None or len(new) != 1 or new[0].run_at is not None:
            return None
        if policy_of(new[0].queue).limited:
            return None
        with self._making:
            if self._short_cut is None:
                self._short_cut = ShortCut(self.transport.publisher(), self.database)
        return self._short_cut if self._short_cut.open_for(new[0].queue) else None

    def close(self) -> None:
        """For front doors: flush what is on its way and close all connections."""
        if self._short_cut is not None:
            self._short_cut.close()
            self._short_cut = None
        self.loops.close()
        self.database.close()

    # -- life of a worker process

    def boot(self, threads: int, queues: list[str]) -> None:
        """Start the loops. A database without our schema ends the process with one line."""
        try:
            self.loops.persist(lambda: schema.require(self.loops))
        except ChronosError as error:
            sys.stderr.write(f"chronos: {error}\n")
            raise SystemExit(EXIT_WRONG) from None
        self.held.threads, self.held.queues = threads, max(1, len(queues))
        self.held.stopping = False
        name = self.settings.worker_name or socket.gethostname()
        own = Database(database_url(self.settings), self.settings, connections=1, by_index=True)
        self.beat = Beat(own, self.held, self.settings.lease, name, self.die)
        self.beat.register(queues)
        self.finisher = Finisher(self.loops, self.held)
        reaper = Reaper(self.beat.id, self.beat.host, self.settings.lease)
        # What a crash on this host left is taken before the first claim, not a lease later.
        self.loops.persist(lambda: self._recover(reaper))
        self.relay = Relay(self.loops, self.transport.publisher(), self.held, reaper, self.beat.id, self.settings.lease)
        self.finisher.start()
        self.relay.start()
        self.beat.needed = [self.finisher, self.relay]
        self.beat.start()

    def _recover(self, reaper: Reaper) -> None:
        with self.loops.statement() as connection:
            reaper.judge(connection)
            reaper.sweep(connection)

    def hand_back(self, run: Claimed, why: str, wait: float = 0.0) -> None:
        """Give an unstarted run back; the finisher writes it."""
        self.held.ran(run, None)
        self.finish(Ending(run, write=lambda connection: tasks.hand_back(connection, run, why, wait)))

    def finish(self, ending: Ending) -> None:
        """Write how a run ended, as often as it takes."""
        if self.finisher is None:
            raise RuntimeError("a run ended in a process that is no worker")
        self.finisher.put(ending)

    def shut_down(self, timeout: float = 5.0) -> None:
        if self.beat is not None:
            self.beat.needed = []
        if self.relay is not None:
            self.relay.stop()
        if self.finisher is not None:
            self.finisher.stop(timeout)
        if self.beat is not None:
            self.beat.stop()
        self.close()

    def die(self, why: str) -> None:
        """Leave at once: what this process runs belongs to somebody else already."""
        with self._ending:
            log.error("this worker ends itself", why=why)
            sys.stderr.flush()
            os._exit(EXIT_RESTART)


@lru_cache(maxsize=1)
def runtime() -> Runtime:
    return Runtime(settings())
