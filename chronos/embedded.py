"""`chronos up`: everything on embedded parts in one terminal; a second start continues where the first was.

This process owns the servers and supervises the worker; it also gives the housekeeping's ticks, so no periodiq is
needed. None of them outlives it, not even after kill -9.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from chronos import running
from chronos.config import Settings, settings
from chronos.db import Database
from chronos.engine import schema
from chronos.errors import BadInput, ChronosError
from chronos.invocation import program, short
from chronos.runtime import EXIT_WRONG, runtime
from chronos.servers import Say, Servers
from chronos.supervisor import Supervisor, start_master
from private_services import ServiceError
from private_services.children import Child

if TYPE_CHECKING:
    from chronos.ticks import Ticks

THREADS = 8
#: Bytes; a longer log is set aside at the next start, and the one set aside before it is deleted.
LOG_LIMIT = 20_000_000


def up(rabbitmq: bool, say: Say) -> int:
    """Run until somebody stops it; the exit code."""
    configuration = settings()
    configuration.data_dir = folder = configuration.data_dir.expanduser().absolute()
    try:
        (folder / "logs").mkdir(parents=True, exist_ok=True, mode=0o700)
        with running.the_only_one(folder), ExitStack() as stack:
            return _Stack(configuration, say).run(rabbitmq, stack)
    except OSError as error:
        raise BadInput(
            f"cannot work in {folder}: {error.strerror or error}; set CHRONOS_DATA_DIR to another folder"
        ) from error
    except ServiceError as error:
        raise ChronosError(_one_line(error)) from error


class _Stack:
    def __init__(self, configuration: Settings, say: Say) -> None:
        self.configuration, self.say = configuration, say
        self.folder = configuration.data_dir
        self.log = self.folder / "logs" / "worker.log"
        self.servers = Servers(configuration, say)
        self.ticks: Ticks
        self.started = time.monotonic()
        self.ready = self.introduced = self.away = False
        self.supervisor: Supervisor | None = None

    def run(self, rabbitmq: bool, stack: ExitStack) -> int:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # until the supervisor takes both
        stack.callback(self.servers.stop)
        addresses = self.servers.start(rabbitmq)
        configuration = self.configuration
        database = Database(addresses["CHRONOS_DATABASE_URL"], configuration)
        stack.callback(database.close)
        database.persist(lambda: schema.upgrade(database), deadline=configuration.connect_timeout_seconds)
        running.tell(self.folder, addresses)
        # Declares every actor, the user's own included: a module that cannot be imported is told here, in one line.
        from chronos.ticks import Ticks

        self.ticks = Ticks()

        stack.callback(runtime().database.close)
        self._set_long_log_aside()
        with open(self.log, "ab") as log:
            born = log.tell()

            def start() -> Child:
                self.started, self.ready = time.monotonic(), False
                return start_master(
                    ["-p", "1", "-t", str(THREADS)],
                    death_signal=signal.SIGKILL,  # its database goes with us: there is nothing to finish
                    env={**os.environ, **addresses},
                    output=log,
                )

            self.supervisor = Supervisor(
                start,
                configuration.shutdown_seconds,
                lambda words: self.say("", words, ""),
                on_stop=self._on_stop,
                idle=self._idle,
            )
            code = self.supervisor.run()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the servers are stopped in order now
        if code != 0:
            raise (BadInput if code == EXIT_WRONG else ChronosError)(_last_words(self.log, born, code))
        waiting = self._count("pending", "in_progress")
        verb = "1 task waits" if waiting == 1 else f"{waiting} tasks wait"
        self.say("", "stopped, nothing lost" + (f": {verb} for the next start" if waiting else ""), "")
        return 0

    # -- what happens while the worker runs

    def _idle(self) -> float:
        """Seconds until the next look."""
        self.servers.revive()
        try:
            if not self.ready:
                self._look_for_the_worker()
            self.ticks.give()
        except (DBAPIError, ChronosError) as error:
            if not self.away:
                self.say("", f"PostgreSQL does not answer, tasks wait for it: {_one_line(error)}", "")
            self.away = True
            return 1.0
        self.away = False
        return 60.05 - time.time() % 60 if self.ready else 0.1

    def _look_for_the_worker(self) -> None:
        with runtime().database.statement() as connection:
            self.ready = bool(
                connection.execute(
                    text("select 1 from workers where not dead and pid = any(cast(:pids as int[]))"),
                    {"pids": self._processes()},
                ).scalar()
            )
        if self.ready:
            took = time.monotonic() - self.started
            self.say("worker", f"ready in {took:.1f} s", f"{THREADS} threads")
            if not self.introduced:
                self.introduced = True
                self._introduce()

    def _introduce(self) -> None:
        waiting = self._count("pending", "in_progress")
        if waiting:
            self.say("tasks", "going on", f"{waiting} from the last time")
        typed = program(self.folder)
        self.say("", f"\nTry   {typed} doctor", "")
        self.say("", f'      {typed} task submit ping \'{{"say": "hello"}}\'', "")
        self.say("", f"      {typed} task list", "")
        self.say("", f"Logs  {short(self.log.parent)}", "")
        self.say("", "Stop  Ctrl-C (a second start continues)\n", "")

    def _on_stop(self, asked: int) -> None:
        try:
            tasks = self._running()
        except DBAPIError:
            tasks = []
        them = "it" if len(tasks) == 1 else "them"
        if asked == 1 and tasks:
            count = "1 task" if len(tasks) == 1 else f"{len(tasks)} tasks"
            more = "; ..." if len(tasks) > 3 else ""
            words = f"finishing {count} ({'; '.join(tasks[:3])}{more}), Ctrl-C again hands {them} back"
            self.say("", words, "")
        elif tasks:
            self.say("", f"handing {them} back", "")
        elif asked == 1:
            self.say("", "stopping", "")

    def _running(self) -> list[str]:
        with runtime().database.statement() as connection:
            rows = connection.execute(
                text(
                    "select t.task_name, t.id, t.progress from tasks t join workers w on w.id = t.worker"
                    " where t.status = 'in_progress' and w.pid = any(cast(:pids as int[])) order by t.started_at"
                ),
                {"pids": self._processes()},
            ).all()
        return [f"{row.task_name} {str(row.id)[:13]}{_percent(row.progress)}" for row in rows]

    def _count(self, *statuses: str) -> int:
        with runtime().database.statement() as connection:
            count = connection.execute(
                text("select count(*) from tasks where status = any(cast(:statuses as text[]))"),
                {"statuses": list(statuses)},
            )
            return int(count.scalar_one())

    def _processes(self) -> list[int]:
        """The worker's."""
        master = self.supervisor.master if self.supervisor else None
        try:
            return [child.pid for child in psutil.Process(master.pid).children(recursive=True)] if master else []
        except psutil.Error:
            return []

    def _set_long_log_aside(self) -> None:
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.old"))


def _percent(progress: dict[str, Any] | None) -> str:
    if not progress or not progress.get("total"):
        return ""
    return f", {100 * progress['done'] / progress['total']:.0f} %"


def _last_words(log: Path, start: int, code: int) -> str:
    """Why the worker could not be started, as it said itself."""
    with open(log, "rb") as file:
        file.seek(start)
        lines = file.read().decode("utf-8", "replace").splitlines()
    said = [line.removeprefix("chronos: ") for line in lines if line.startswith("chronos: ")]
    return said[-1] if said else f"the worker ended with exit code {code}: {log} says why"


def _one_line(error: Exception) -> str:
    """A server that does not start shows the end of its log; here its name is enough."""
    words, _, tail = str(getattr(error, "orig", None) or error).partition("; the end of ")
    log = tail.partition(":\n")[0]
    return " ".join(words.split()) + (f"; {log} says why" if log else "")
