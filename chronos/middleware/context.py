"""What an actor gets beside its params: its task, its transaction, its intents, its progress."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from sqlalchemy import Connection

from chronos import telegram
from chronos.db import DatabaseTrouble, is_passing
from chronos.engine import sends, tasks
from chronos.engine.tasks import Claimed
from chronos.errors import Ambiguous, BadInput, Cancelled, ClaimLost, Later, NotSent, PermanentError, one_line
from chronos.redaction import without_secrets
from chronos.runtime import Runtime
from chronos.telegram import Urgency

if TYPE_CHECKING:
    from aiogram.methods import TelegramMethod

T = TypeVar("T")

#: Errors that prove that nothing left this machine.
SURELY_NOT_SENT = (NotSent, Later, PermanentError, Cancelled, ConnectionRefusedError)
#: Progress is for people: more often than this it is dropped (the last one always counts).
PROGRESS_SECONDS = 0.5
#: Seconds between two edits of a card by one run; until a card is looked for again; after an edit that failed.
CARD_SECONDS, CARD_LOOK, CARD_PAUSE = 3.0, 1.0, 15.0
#: Before a run begins anew whose transaction PostgreSQL broke off.
TROUBLE_SECONDS = 1.0


class Intent:
    """One outside effect under its key: `with ctx.intent("welcome") as effect: if effect.needed: ...`."""

    def __init__(self, context: Context, key: str, chat: int | None) -> None:
        self._context, self._key, self._chat = context, key, chat
        self.needed = True
        self.doubtful = False  #: an earlier run may have made it; not needed, until a person decides
        self.result: Any = None
        self.message_id: int | None = None

    def __enter__(self) -> Intent:
        self._context._wait_until_alive()
        stored = self._context._persist(self._begin)
        if stored is not None:
            self.needed, self.result, self.doubtful = False, stored.result, stored.doubtful
            if stored.doubtful:
                self._context.doubts.append(self._key)
        else:
            self._context.task.effects_open = True
        return self

    def _begin(self) -> sends.Stored | None:
        with self._context._runtime.database.statement() as connection:
            return sends.intend(connection, self._context.task, self._key, self._chat)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.needed:
            return
        self._context.task.effects_open = False
        if error is None:
            self._store("sent")
        elif isinstance(error, SURELY_NOT_SENT):
            self._store("not_sent")
        else:
            self._store("unknown")
            raise Ambiguous(f"the effect {self._key!r} may have been made: {one_line(error)}") from error

    def _store(self, state: str) -> None:
        def write() -> None:
            with self._context._runtime.database.statement() as connection:
                sends.store(connection, self._context.task, self._key, state, self.result, self.message_id)

        self._context._persist(write)

    async def __aenter__(self) -> Intent:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)


class Context:
    def __init__(self, runtime: Runtime, task: Claimed) -> None:
        self._runtime = runtime
        self.task = task
        self.completed = False
        self.doubts: list[str] = []  #: effects that may have been made: the task cannot end as completed
        self._progressed = 0.0
        self._card_next = 0.0
        self._connection: Connection | None = None

    @cached_property
    def log(self) -> Any:
        """A logger whose lines carry the task's fields."""
        task = self.task
        return structlog.get_logger("chronos.actor").bind(
            task=str(task.id), queue=task.queue, actor=task.task_name, attempt=task.attempt
        )

    def _persist(self, work: Any) -> Any:
        return self._runtime.database.persist(work)

    def _wait_until_alive(self) -> None:
        if self._runtime.beat is not None:
            self._runtime.beat.wait_until_fresh()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Your own writes, locked to this run: they are committed only while the task is still ours."""
        try:
            with self._runtime.database.transaction() as connection:
                if not tasks.lock_owned(connection, self.task):
                    raise ClaimLost(f"task {self.task.id} is no longer this run's")
                self._connection = connection
                try:
                    yield connection
                finally:
                    self._connection = None
        except DatabaseTrouble as error:
            if is_passing(error):
                # A deadlock, a restart of PostgreSQL: not the actor's fault, so it costs no attempt.
                raise Later(TROUBLE_SECONDS, f"PostgreSQL: {one_line(error)}") from error
            raise

    def complete(self, result: Any = None) -> None:
        """Inside transaction(): the completion commits with your writes, or neither does."""
        if self._connection is None:
            raise BadInput(
                "ctx.complete() belongs inside `with ctx.transaction():`; elsewhere simply return the result"
            )
        self.refuse_doubts()
        payload = None if result is None else json.dumps(result, allow_nan=False, default=str)
        tasks.finish(self._connection, [(self.task.id, self.task.token, payload)])
        self.completed = True

    def intent(self, key: str, *, chat: int | None = None) -> Intent:
        """An effect outside of the database, made at most once per key over all runs of the task."""
        if self._connection is not None:
            raise BadInput("ctx.intent() inside ctx.transaction() would wait for its own lock: make the effect before")
        return Intent(self, key, chat)

    def refuse_doubts(self) -> None:
        """Raise Ambiguous when an effect of the task may have been made and nobody has decided about it."""
        if self.doubts:
            raise Ambiguous(f"the effect {self.doubts[0]!r} may have been made by an earlier run")

    def send(self, key: str, method: TelegramMethod[Any], *, urgency: Urgency | None = None) -> telegram.Sent:
        """Send a message at most once over all runs of the task (a coroutine awaits chronos.telegram.send)."""
        return telegram.run(telegram.send(self, key, method, urgency=urgency))

    def call(self, method: TelegramMethod[T], *, urgency: Urgency | None = None) -> T:
        """An edit, a delete, a read: what may simply be repeated."""
        return telegram.call(method, urgency=urgency or telegram.OF_QUEUE[self.task.queue])

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Tell people how far it is. Raises when the run has lost its task."""
        now = time.monotonic()
        if now - self._progressed < PROGRESS_SECONDS and done != total:
            return
        self._progressed = now
        facts = json.dumps({"done": done, "total": total, "note": without_secrets(note)}).replace("\\u0000", "")
        if self._connection is not None:
            # The row is locked by our own transaction: another connection would wait for it for ever.
            tasks.store_progress(self._connection, self.task, facts)
            return
        try:
            with self._runtime.database.statement() as connection:
                ours = tasks.store_progress(connection, self.task, facts)
        except DatabaseTrouble as error:
            if not is_passing(error):
                raise
            # An outage of PostgreSQL costs a run the sight of its progress, not an attempt.
            self.log.info("progress is not shown", error=one_line(error))
            return
        if not ours:
            raise ClaimLost(f"task {self.task.id} is no longer this run's")
        if self.task.chat is not None and now >= self._card_next:
            self._card_next = now + CARD_SECONDS
            self._edit_card()

    def _edit_card(self) -> None:
        """Its last state is the notice's to show: whatever goes wrong here is missed by nobody."""
        edit = self._show_card()
        if telegram.on_the_loop():
            telegram.run_soon(edit)
        else:
            telegram.run(edit)

    async def _show_card(self) -> None:
        from chronos import cards

        shown = await cards.show_in_passing(self.task.id)
        if not shown:
            # The bot may be about to write it; or Telegram is not to be had.
            self._card_next = time.monotonic() + (CARD_PAUSE if shown is None else CARD_LOOK)

    def cancelled(self) -> bool:
        """Whether somebody wants this run to stop; raise Cancelled() then, at a good place."""
        return self.task.cancelled
