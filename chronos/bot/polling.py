"""Fetches updates: a batch is confirmed by the next offset only after it was stored.

While PostgreSQL is away they stay with Telegram, and each chat that writes is told so once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from aiogram import Bot
from aiogram.methods import TelegramMethod

from chronos.bot.inbox import Inbox
from chronos.bot.poller import PolledByAnother, Poller
from chronos.db import DatabaseTrouble, is_passing
from chronos.errors import Later, Outcome, Unavailable, one_line
from chronos.telegram.budget import BotStopped
from chronos.telegram.sender import AnotherPoller

log = structlog.get_logger("chronos.bot")

ALLOWED = ["message", "callback_query", "my_chat_member"]
#: Seconds of one long poll.
LONG_POLL = 25
#: Seconds that a batch may take to be stored before people are told that we cannot.
SLOW_STORE = 3.0
#: Seconds between two tries while Telegram or PostgreSQL is away.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
#: A process that has polled for less than this many seconds is the second of two; it gives way sooner.
NEWCOMER = 30.0
CONFLICTS_OF_A_NEWCOMER, CONFLICTS = 2, 10
CONFLICT_PAUSE = 2.0


class GetRawUpdates(TelegramMethod[list[dict[str, Any]]]):
    """As Telegram sent them: one update that nobody can parse must not hold up the others."""

    __returning__ = list[dict[str, Any]]
    __api_method__ = "getUpdates"

    offset: int
    timeout: int  #: seconds
    allowed_updates: list[str]


class Polling:
    def __init__(
        self,
        bot: Bot,
        inbox: Inbox,
        poller: Poller,
        *,
        ready: Callable[[], None],
        stored: Callable[[], None],
        tell_away: Callable[[list[dict[str, Any]]], Awaitable[None]],
    ) -> None:
        """ready(): in a thread, before the first batch is stored; stored(): there is something to handle;
        tell_away(updates): PostgreSQL is away."""
        self._bot, self._inbox, self._poller = bot, inbox, poller
        self._ready, self._stored, self._tell_away = ready, stored, tell_away
        self._is_ready = False
        self._since = time.monotonic()
        self._conflicts = 0

    async def run(self) -> None:
        """Until it is cancelled. Raises PolledByAnother, BotStopped, or what `ready` raises."""
        offset, wait, pause = 0, LONG_POLL, FIRST_PAUSE
        while True:
            if not self._is_ready:
                wait = LONG_POLL if await self._get_ready() else 0
            try:
                updates = await self._bot(GetRawUpdates(offset=offset, timeout=wait, allowed_updates=ALLOWED))
            except AnotherPoller:
                await self._give_way_or_wait()
                continue
            except BotStopped:
                raise
            except (Outcome, Later) as error:
                log.warning("updates could not be fetched", error=one_line(error), again_in=pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
                continue
            self._conflicts, pause = 0, FIRST_PAUSE
            if not updates:
                if wait == 0:
                    await asyncio.sleep(FIRST_PAUSE)
                continue
            if await self._store(updates):
                offset, wait = updates[-1]["update_id"] + 1, LONG_POLL
            else:
                wait = 0
                await asyncio.sleep(FIRST_PAUSE)

    async def _get_ready(self) -> bool:
        """Be the one who polls. False: PostgreSQL is away."""
        try:
            await asyncio.to_thread(self._ready)
        except (Unavailable, *DatabaseTrouble) as error:
            if isinstance(error, DatabaseTrouble) and not is_passing(error):
                raise
            return False
        self._is_ready = True
        self._stored()
        return True

    async def _store(self, updates: list[dict[str, Any]]) -> bool:
        storing = asyncio.create_task(asyncio.to_thread(self._store_now, updates))
        done, _ = await asyncio.wait({storing}, timeout=SLOW_STORE)
        if not done:
            await self._tell_away(updates)
        try:
            stored = await storing
        except DatabaseTrouble as error:
            if not is_passing(error):
                raise
            log.warning("PostgreSQL is away: updates stay with Telegram", updates=len(updates), error=one_line(error))
            stored = False
        if stored:
            self._stored()
        else:
            await self._tell_away(updates)
        return stored

    def _store_now(self, updates: list[dict[str, Any]]) -> bool:
        if not self._is_ready:
            return False
        self._inbox.store(updates)
        return True

    async def _give_way_or_wait(self) -> None:
        """Telegram gives the updates to whoever asked last. The newcomer stops; the older one insists for a while:
        what it hears may be the last breath of a poll that died."""
        self._conflicts += 1
        newcomer = time.monotonic() - self._since < NEWCOMER
        if self._conflicts >= (CONFLICTS_OF_A_NEWCOMER if newcomer else CONFLICTS):
            try:
                who = await asyncio.to_thread(self._poller.who)
            except (Unavailable, *DatabaseTrouble):
                who = self._poller.words(None)
            raise PolledByAnother(who)
        log.warning("Telegram says that another process polls with this token")
        await asyncio.sleep(CONFLICT_PAUSE if newcomer else CONFLICT_PAUSE / 2)
