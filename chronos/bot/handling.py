"""Handles stored updates: in order per chat, several chats at once, each until it is done or put aside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from chronos.bot.inbox import Inbox, Waiting
from chronos.db import DatabaseTrouble, is_passing
from chronos.errors import Later, PermanentError, Unavailable, one_line

log = structlog.get_logger("chronos.bot")

#: Chats at once; most of that time they wait for Telegram, and what talks to PostgreSQL waits for a thread.
MOST_CHATS = 64
#: Seconds that one update may take, waiting for Telegram's limits included.
LONGEST = 120.0
#: Seconds between two looks when nothing wakes us.
IDLE = 5.0
#: Seconds before the second try of an update; the third comes after twice of it.
PAUSE = 1.0
#: Seconds while PostgreSQL or Telegram is away.
AWAY_PAUSE = 1.0
#: Why a person cannot be answered: nothing that another try would change.
NOBODY_THERE = frozenset(
    {"blocked", "deactivated", "not started", "kicked", "not a member", "chat not found", "no rights"}
)


class Handling:
    def __init__(
        self,
        inbox: Inbox,
        handle: Callable[[Waiting], Awaitable[None]],
        put_aside: Callable[[Waiting, str], Awaitable[None]],
    ) -> None:
        """put_aside(update, why): it was put aside, somebody should know."""
        self._inbox, self._handle, self._put_aside = inbox, handle, put_aside
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._news = asyncio.Event()

    def wake(self) -> None:
        self._news.set()

    async def run(self) -> None:
        """Until it is cancelled; what it had begun goes on, see `end`."""
        while True:
            self._news.clear()
            for waiting in await self._claim():
                self._busy[waiting.chat] = asyncio.create_task(self._one(waiting))
            try:
                await asyncio.wait_for(self._news.wait(), IDLE)
            except TimeoutError:
                continue

    async def end(self, seconds: float) -> None:
        """Let what has begun finish; what does not is given back."""
        tasks = set(self._busy.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=2.0)

    async def _claim(self) -> list[Waiting]:
        free = MOST_CHATS - len(self._busy)
        if free <= 0:
            return []
        # Not to be cut short by a stop: what the statement counted must be begun or given back.
        claiming = asyncio.create_task(asyncio.to_thread(self._inbox.claim, list(self._busy), free))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            for waiting in await asyncio.wait_for(claiming, 2.0):
                await self._ended(waiting, Later(0.0, "the bot stops"))
            raise
        except DatabaseTrouble as error:
            if not is_passing(error):
                raise
            await asyncio.sleep(AWAY_PAUSE)
            self._news.set()
            return []

    async def _one(self, waiting: Waiting) -> None:
        pause = 0.0
        try:
            if waiting.aside:
                await self._tell(waiting, "it ended the bot three times")
                return
            error: BaseException | None = None
            try:
                async with asyncio.timeout(LONGEST):
                    await self._handle(waiting)
            except (Exception, asyncio.CancelledError) as raised:
                error = raised
            pause = await self._ended(waiting, error)
            if isinstance(error, asyncio.CancelledError):
                raise error
        finally:
            # The chat waits, so that its updates stay in order.
            if pause:
                await asyncio.sleep(pause)
            del self._busy[waiting.chat]
            self._news.set()

    async def _ended(self, waiting: Waiting, error: BaseException | None) -> float:
        """Write how a try ended; the seconds until the next one."""
        id_ = waiting.update_id
        if error is None or (isinstance(error, PermanentError) and error.reason in NOBODY_THERE):
            await self._persist(self._inbox.done, id_)
            return 0.0
        if isinstance(error, Later | Unavailable | asyncio.CancelledError) or is_passing(error):
            log.info("an update waits", update=id_, why=one_line(error))
            await self._persist(self._inbox.give_back, id_)
            return 0.0 if isinstance(error, asyncio.CancelledError) else AWAY_PAUSE
        log.warning("an update could not be handled", update=id_, run=waiting.tries, exc_info=error)
        why = one_line(error)
        if await self._persist(self._inbox.failed, id_, f"{type(error).__name__}: {why}"):
            await self._tell(waiting, why)
            return 0.0
        return PAUSE * waiting.tries

    async def _persist(self, write: Callable[..., object], *facts: object) -> object:
        """As often as it takes: until it is written, the chat's next update waits. A repeat changes nothing more,
        except that a try may be given back twice."""
        while True:
            try:
                return await asyncio.to_thread(write, *facts)
            except DatabaseTrouble as error:
                if not is_passing(error):
                    raise
                await asyncio.sleep(AWAY_PAUSE)

    async def _tell(self, waiting: Waiting, why: str) -> None:
        try:
            await self._put_aside(waiting, why)
        except Exception as error:
            log.warning("nobody could be told of an update that was put aside", error=one_line(error))
