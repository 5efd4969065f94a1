"""Every long-lived object of a process, built once and lazily; and how the process lives and ends."""

from __future__ import annotations

import os
import socket
import sys
import threading
from functools import lru_cache
from pathlib import Path

import structlog
from sqlalchemy import text

from chronos.config import Settings, settings
from chronos.db import Database
from chronos.engine import schema, tasks
from chronos.engine.beat import Beat
from chronos.engine.finisher import Ending, Finisher
from chronos.engine.held import Held
from chronos.engine.reaper import Reaper
from chronos.engine.relay import Relay
from chronos.engine.tasks import Claimed, NewTask, Submitted
from chronos.engine.transports import Inbox, MemoryPublisher, RabbitInbox, RabbitPublisher, StoreInbox
from chronos.errors import BadInput, ChronosError
from chronos.queues import policy_of
from private_services import MessageStore

log = structlog.get_logger("chronos")

#: Exit codes: 2 = wrong use or settings; 3 = the others think that we are dead, or a run hangs: restart us.
EXIT_WRONG, EXIT_RESTART = 2, 3


def running_file(configuration: Settings) -> Path:
    """Where `chronos up` says which database it runs on, for every other command."""
    return configuration.data_dir / "running.env"


def database_url(configuration: Settings) -> str:
    if configuration.database_url is not None:
        return configuration.database_url.get_secret_value()
    try:
        return running_file(configuration).read_text(encoding="utf-8").strip()
    except OSError:
        raise BadInput(
            "CHRONOS_DATABASE_URL is not set and no `chronos up` runs in "
            f"{configuration.data_dir}: set it, or start one with `chronos up`"
        ) from None


class Runtime:
    def __init__(self, configuration: Settings) -> None:
        self.settings = configuration
        self.database = Database(database_url(configuration), configuration)
        self.store = MessageStore()
        self.amqp_url = configuration.amqp_url.get_secret_value() if configuration.amqp_url else None
        self.held = Held()
        self.beat: Beat | None = None
        self.finisher: Finisher | None = None
        self.relay: Relay | None = None
        self._submitter: RabbitPublisher | None = None
        self._ending = threading.Lock()

    # -- both ends of the broker

    def publisher(self) -> RabbitPublisher | MemoryPublisher:
        return RabbitPublisher(self.amqp_url) if self.amqp_url else MemoryPublisher(self.store)

    def inbox(self, queue: str) -> Inbox:
        return RabbitInbox(self.amqp_url, queue) if self.amqp_url else StoreInbox(self.store, queue)

    # -- front doors

    def submit(self, *new: NewTask) -> list[Submitted]:
        """Accept tasks: when this returns they are durable. A publish that fails costs nothing."""
        direct = len(new) == 1 and self.amqp_url is not None and new[0].run_at is None
        direct = direct and not policy_of(new[0].queue).limited
        hold = self.settings.lease if direct else 0.0

        def write() -> list[Submitted]:
            with self.database.transaction() as connection:
                return tasks.submit(
                    connection,
                    new,
                    max_payload_bytes=self.settings.max_payload_bytes,
                    hold=hold,
                    notify=not direct,
                )

        done = self.database.persist(write, deadline=self.settings.connect_timeout_seconds)
        if direct and done[0].created:
            self._publish_now(new[0], done[0])
        return done

    def _publish_now(self, new: NewTask, done: Submitted) -> None:
        try:
            if self._submitter is None:
                self._submitter = RabbitPublisher(self.amqp_url or "")
            self._submitter.publish(new.queue, [(done.id, new.task_name, new.user_id)])
        except Exception as error:
            log.info("left to the relay", task=str(done.id), error=repr(error))
            with self.database.statement() as connection:
                tasks.wake(connection, [done.id])

    # -- life of a worker process

    def boot(self, threads: int, queues: list[str], limits: list[dict[str, object]]) -> None:
        """Start the loops. A database without our schema ends the process with one line."""
        try:
            self.database.persist(lambda: schema.require(self.database))
        except ChronosError as error:
            sys.stderr.write(f"chronos: {error}\n")
            sys.stderr.flush()
            # Not sys.exit(): the event loop's thread is up already and would keep the process.
            os._exit(EXIT_WRONG)
        self.held.threads, self.held.queues = threads, max(1, len(queues))
        self.held.stopping = False
        name = self.settings.worker_name or socket.gethostname()
        self.beat = Beat(self.database, self.held, self.settings.lease, name, self.die)
        self.beat.register(queues)
        self._store_limits(limits)
        self.finisher = Finisher(self.database, self.held)
        reaper = Reaper(self.beat.id, self.beat.host, self.settings.lease)
        # What a crash on this host left is taken before the first claim, not a lease later.
        self.database.persist(lambda: self._recover(reaper))
        self.relay = Relay(
            self.database, self.publisher(), self.held, reaper, self.beat.id, self.settings.lease
        )
        self.beat.start()
        self.finisher.start()
        self.relay.start()

    def _recover(self, reaper: Reaper) -> None:
        with self.database.statement() as connection:
            reaper.judge(connection)
            reaper.sweep(connection)

    def _store_limits(self, limits: list[dict[str, object]]) -> None:
        with self.database.transaction() as connection:
            for limit in limits:
                connection.execute(
                    text(
                        "insert into limits (key, queue, task_name, step, max_running) values"
                        " (:key, :queue, :task_name, :step * interval '1 second', :max_running)"
                        " on conflict (key) do update set step = excluded.step, max_running = excluded.max_running"
                        " where limits.step is distinct from excluded.step"
                        " or limits.max_running is distinct from excluded.max_running"
                    ),
                    limit,
                )

    def hand_back(self, run: Claimed, why: str) -> None:
        """Give an unstarted run back; the finisher writes it."""
        self.held.ran(run, None)
        assert self.finisher is not None  # noqa: S101
        self.finisher.put(Ending(run, write=lambda connection: tasks.hand_back(connection, run, why)))

    def shut_down(self, timeout: float = 5.0) -> None:
        if self.relay is not None:
            self.relay.stop()
        if self.finisher is not None:
            self.finisher.stop(timeout)
        if self.beat is not None:
            self.beat.stop()
        if self._submitter is not None:
            self._submitter.close()
        self.database.close()

    def die(self, why: str) -> None:
        """Leave at once: what this process runs belongs to somebody else already."""
        with self._ending:
            log.error("this worker ends itself", why=why)
            sys.stderr.flush()
            os._exit(EXIT_RESTART)


@lru_cache(maxsize=1)
def runtime() -> Runtime:
    return Runtime(settings())
