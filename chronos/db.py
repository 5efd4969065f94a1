"""Connections to PostgreSQL: one small pool per process, timeouts on everything, growing pauses after a loss."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool

from chronos.config import Settings
from chronos.errors import Unavailable, one_line

T = TypeVar("T")

#: Pauses between tries while PostgreSQL is away.
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0

#: A plan that was made, and kept, while the table was small reads all of it later: seen to make completions ten times
#: as dear in the middle of a run.
BY_INDEX = " -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off"

#: Channel on which loops are woken; a hint, every loop polls as well.
WAKE_CHANNEL = "chronos"


def pauses(first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> Iterator[float]:
    """Growing pauses, for ever."""
    pause = first
    while True:
        yield pause
        pause = min(longest, pause * 2)


#: What a statement can raise when PostgreSQL or the way to it is in trouble.
DatabaseTrouble = (DBAPIError, PoolTimeout)


def is_passing(error: BaseException) -> bool:
    """Whether the same statement may simply be tried again: lost connection, deadlock, serialization, restart."""
    if isinstance(error, PoolTimeout):
        return True
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None) or ""
    if state:
        # 40: rollback; 08: connection; 57: shutdown, or a statement that took too long; 53: out of connections,
        # disk or memory; 58: the disk; 25006: read-only; 55P03: a lock
        return state[:2] in {"40", "08", "53", "58"} or state.startswith("57") or state in {"25006", "55P03"}
    return error.connection_invalidated or isinstance(error, OperationalError | InterfaceError)


class _AnsweringConnection(psycopg.Connection[Any]):
    """Gives up on a server that accepts a statement and never answers: statement_timeout is the server's own clock."""

    answer_seconds = 60.0

    def wait(self, gen: Any, interval: float = 0.0, timeout: float | None = None) -> Any:
        try:
            return super().wait(gen, timeout=self.answer_seconds if timeout is None else timeout)
        except psycopg.OperationalError:
            if not self.closed and self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                # Its answer may still come, to a question that nobody asks any more.
                self.pgconn.finish()
            raise


class Database:
    def __init__(self, url: str, settings: Settings, connections: int | None = None, *, by_index: bool = False) -> None:
        """by_index: every statement names its rows by an index, and PostgreSQL is to find them so."""
        self._settings = settings
        self._by_index = by_index
        self.url = make_url(url).set(drivername="postgresql+psycopg")
        self.engine: Engine = create_engine(
            self.url,
            creator=self.connect,
            poolclass=QueuePool,
            pool_size=connections or settings.pool_size,
            max_overflow=0,
            pool_timeout=settings.connect_timeout_seconds,
            pool_recycle=3600,
        )
        #: One statement, one round trip: no BEGIN and COMMIT around it.
        self.single = self.engine.execution_options(isolation_level="AUTOCOMMIT")

    def connect(self) -> psycopg.Connection[Any]:
        """A connection beside the pool, for LISTEN; every wait on it is limited."""
        milliseconds = int(self._settings.statement_timeout_seconds * 1000)
        connection = _AnsweringConnection.connect(
            self.url.set(drivername="postgresql").render_as_string(hide_password=False),
            connect_timeout=int(self._settings.connect_timeout_seconds),
            options=f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds // 2}"
            # A worker that freezes in a transaction must not keep its task's lock for longer than it may live.
            f" -c idle_in_transaction_session_timeout={int(self._settings.lease * 1000)} -c timezone=UTC"
            # Compiling a statement takes longer than any of ours runs.
            " -c jit=off" + (BY_INDEX if self._by_index else ""),
            application_name="chronos",
            # A cut network is noticed within 15 s even where nothing is being written.
            keepalives_idle=5,
            keepalives_interval=5,
            keepalives_count=2,
            tcp_user_timeout=15000,
        )
        connection.answer_seconds = self._settings.statement_timeout_seconds + 5
        return connection

    @contextmanager
    def statement(self) -> Iterator[Connection]:
        with self.single.connect() as connection:
            yield connection

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self.engine.begin() as connection:
            yield connection

    def persist(
        self,
        work: Callable[[], T],
        *,
        give_up: Callable[[], bool] = lambda: False,
        deadline: float | None = None,
        waiting: Callable[[float], None] = time.sleep,
    ) -> T:
        """Repeat `work` through losses of PostgreSQL. It must be safe to repeat: a lost answer looks like a failure."""
        ends = None if deadline is None else time.monotonic() + deadline
        for pause in pauses():
            try:
                return work()
            except DatabaseTrouble as error:
                if not is_passing(error):
                    raise
                if give_up() or (ends is not None and time.monotonic() + pause > ends):
                    why = getattr(error, "orig", None) or error
                    raise Unavailable(f"PostgreSQL does not answer: {one_line(why)}") from error
            waiting(pause)
        raise AssertionError("unreachable")

    def notify(self, payload: str) -> None:
        with self.statement() as connection:
            connection.execute(text("select pg_notify(:c, :p)"), {"c": WAKE_CHANNEL, "p": payload})

    def close(self) -> None:
        self.engine.dispose()
