"""`chronos up`: everything on embedded parts in one terminal; a second start continues where the first was.

This process owns the servers and supervises the worker and the bot; it also gives the housekeeping's ticks, so no
periodiq is needed. None of them outlives it, not even after kill -9.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import psutil
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from chronos import people, playground, running
from chronos.config import Settings, settings
from chronos.db import Database
from chronos.engine import schema
from chronos.errors import BadInput, ChronosError
from chronos.invocation import program, short
from chronos.models.user import Role
from chronos.runtime import EXIT_WRONG, runtime
from chronos.servers import Say, Servers
from chronos.supervisor import Part, Supervisor, start_master
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
        self.servers = Servers(configuration, say)
        self.ticks: Ticks
        self.worker = _Logged("worker", self.folder, self._start_worker)
        self.bot = _Logged("bot", self.folder, self._start_bot)
        self.introduced = self.away = False
        self.username = ""
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
        self.environment = {**os.environ, **addresses}
        if self.servers.sandbox is not None:
            with database.transaction() as connection:
                playground.furnish(connection)
        # Declares every actor, the user's own included: a module that cannot be imported is told here, in one line.
        from chronos.ticks import Ticks

        self.ticks = Ticks()

        stack.callback(runtime().database.close)
        self.supervisor = Supervisor(
            [self.worker, self.bot],
            configuration.shutdown_seconds,
            lambda words: self.say("", words, ""),
            on_stop=self._on_stop,
            idle=self._idle,
        )
        code = self.supervisor.run()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the servers are stopped in order now
        if code != 0:
            guilty = self.supervisor.wrong or self.worker
            assert isinstance(guilty, _Logged)  # noqa: S101
            raise (BadInput if code == EXIT_WRONG else ChronosError)(guilty.last_words(code))
        waiting = self._count("pending", "in_progress")
        verb = "1 task waits" if waiting == 1 else f"{waiting} tasks wait"
        self.say("", "stopped, nothing lost" + (f": {verb} for the next start" if waiting else ""), "")
        return 0

    def _start_worker(self, log: IO[bytes]) -> Child:
        return start_master(
            ["-p", "1", "-t", str(THREADS)],
            death_signal=signal.SIGKILL,  # its database goes with us: there is nothing to finish
            env=self.environment,
            output=log,
        )

    def _start_bot(self, log: IO[bytes]) -> Child:
        return Child(
            [sys.executable, "-m", "chronos.cli", "bot"],
            death_signal=signal.SIGKILL,
            env=self.environment,
            output=log,
            cwd=os.getcwd(),
        )

    # -- what happens while they run

    def _idle(self) -> float:
        """Seconds until the next look."""
        if self.servers.revive():
            runtime().database.engine.dispose()  # its connections ended with the server that was
        try:
            if not self.worker.ready:
                self._look_for_the_worker()
            if not self.bot.ready:
                self._look_for_the_bot()
            if self.worker.ready and self.bot.ready and not self.introduced:
                self.introduced = True
                self._introduce()
            self.ticks.give()
        except (DBAPIError, ChronosError) as error:
            if not self.away:
                self.say("", f"PostgreSQL does not answer, tasks wait for it: {_one_line(error)}", "")
            self.away = True
            return 1.0
        self.away = False
        return 60.05 - time.time() % 60 if self.introduced and self.worker.ready and self.bot.ready else 0.1

    def _look_for_the_worker(self) -> None:
        with runtime().database.statement() as connection:
            found = connection.execute(
                text("select 1 from workers where not dead and pid = any(cast(:pids as int[]))"),
                {"pids": self._processes()},
            ).scalar()
        if found:
            self.worker.ready = True
            self.say("worker", self.worker.took, f"{THREADS} threads")

    def _look_for_the_bot(self) -> None:
        with runtime().database.statement() as connection:
            name = connection.execute(
                text("select username from bots where id = :bot and cast(poller as jsonb) ->> 'pid' = :pid"),
                {"bot": self.configuration.bot_id, "pid": str(self.bot.child.pid if self.bot.child else 0)},
            ).scalar()
        if name is not None:
            self.bot.ready, self.username = True, str(name)
            self.say("bot", self.bot.took, f"@{name} polls")

    def _introduce(self) -> None:
        waiting = self._count("pending", "in_progress")
        if waiting:
            self.say("tasks", "going on", f"{waiting} from the last time")
        typed, logs = program(self.folder), short(self.folder / "logs")
        if self.servers.sandbox is not None:
            url = self.servers.sandbox.url
            self.say("", f"\nOpen  {url}/   chat with the bot, as admin, editor or user", "")
            self.say("", f'Or    {typed} sandbox say "/report" --as admin', "")
            self.say("", "Real  CHRONOS_BOT_TOKEN=... make run   (a token from @BotFather)", "")
        self._invite()
        self.say("", f"Try   {typed} doctor", "")
        self.say("", f'      {typed} task submit ping \'{{"say": "hello"}}\'', "")
        self.say("", f"      {typed} task list", "")
        self.say("", f"Logs  {logs}", "")
        self.say("", "Stop  Ctrl-C (a second start continues)\n", "")

    def _invite(self) -> None:
        """A link that makes the first who opens it an admin, once. In the sandbox anybody may play at that."""
        if self.servers.sandbox is None and people.with_roles(runtime(), Role.ADMIN):
            return
        code = people.invite_admin(runtime())
        sandbox = self.servers.sandbox
        link = f"{sandbox.url}/?as=user2&start={code}" if sandbox else f"https://t.me/{self.username}?start={code}"
        self.say("", f"Admin {link}   makes who opens it an admin, once", "")

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
        master = self.worker.child
        try:
            return [child.pid for child in psutil.Process(master.pid).children(recursive=True)] if master else []
        except psutil.Error:
            return []


class _Logged(Part):
    """A part whose output goes into a file of the data folder."""

    def __init__(self, name: str, folder: Path, launch: Callable[[IO[bytes]], Child]) -> None:
        super().__init__(name, lambda: self._open_and(launch))
        self.log = folder / "logs" / f"{name}.log"
        self.ready = False
        self._log_start = 0

    def _open_and(self, launch: Callable[[IO[bytes]], Child]) -> Child:
        self.ready = False
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.old"))
        with open(self.log, "ab") as log:
            self._log_start = log.tell()
            return launch(log)

    @property
    def took(self) -> str:
        return f"ready in {time.monotonic() - self.born:.1f} s"

    def last_words(self, code: int) -> str:
        """Why it could not be started, as it said itself."""
        with open(self.log, "rb") as file:
            file.seek(self._log_start)
            lines = file.read().decode("utf-8", "replace").splitlines()
        said = [line.removeprefix("chronos: ") for line in lines if line.startswith("chronos: ")]
        return said[-1] if said else f"the {self.name} ended with exit code {code}: {self.log} says why"


def _percent(progress: dict[str, Any] | None) -> str:
    if not progress or not progress.get("total"):
        return ""
    return f", {100 * progress['done'] / progress['total']:.0f} %"


def _one_line(error: Exception) -> str:
    """A server that does not start shows the end of its log; here its name is enough."""
    words, _, tail = str(getattr(error, "orig", None) or error).partition("; the end of ")
    log = tail.partition(":\n")[0]
    return " ".join(words.split()) + (f"; {log} says why" if log else "")
