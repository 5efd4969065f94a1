"""The bot's process: it polls, stores, handles and beats until it is asked to stop.

Ends with 0 when asked to; with 2, and one line, when somebody else polls, the token is refused or the schema is old.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog
from aiogram import Bot, Dispatcher
from aiogram.methods import DeleteWebhook, GetMe, SendMessage
from aiogram.types import Update

from chronos import people, telegram
from chronos.bot import commands
from chronos.bot.access import Access, Roles
from chronos.bot.handling import Handling
from chronos.bot.inbox import Inbox, Waiting, order_key
from chronos.bot.poller import PolledByAnother, Poller
from chronos.bot.polling import Polling
from chronos.bot.routers import all_of_them
from chronos.bot.texts import plain, say
from chronos.db import DatabaseTrouble, is_passing, pauses
from chronos.engine import schema
from chronos.errors import BadInput, Later, NotMigrated, Outcome, Unavailable, one_line
from chronos.language import language_for
from chronos.models.user import Role
from chronos.people import Person
from chronos.runtime import EXIT_WRONG, Runtime, runtime
from chronos.telegram.budget import BotStopped

log = structlog.get_logger("chronos.bot")

#: Synchronous verbs that run at once; fewer than the database's connections.
THREADS = 6
#: Seconds for what is being handled when we are asked to stop, and for threads that wait for a server.
GRACE, THREAD_GRACE = 5.0, 3.0
#: People whose language is remembered for the time when PostgreSQL is away.
MOST_REMEMBERED = 10_000
#: Characters of a message that are said back.
QUOTED = 60


def dispatcher(here: Runtime, inbox: Inbox, access: Access) -> Dispatcher:
    made = Dispatcher(disable_fsm=True, here=here, inbox=inbox)
    made.update.outer_middleware(access)
    made.message.middleware(Roles())
    made.callback_query.middleware(Roles())
    made.include_routers(*all_of_them())
    return made


class App:
    def __init__(self, here: Runtime, bot: Bot) -> None:
        self.here, self.bot = here, bot
        self.inbox = Inbox(here.database, bot.id)
        self.poller = Poller(here.database, bot.id, here.settings.lease)
        self.dispatcher = dispatcher(here, self.inbox, Access(here, self._met))
        self.handling = Handling(self.inbox, self._handle, self._put_aside)
        self.polling = Polling(
            bot, self.inbox, self.poller, ready=self._ready, stored=self._stored, tell_away=self._tell_away
        )
        self.stopping = asyncio.Event()
        self._started = asyncio.Event()
        self._languages: OrderedDict[int, str] = OrderedDict()
        self._told: set[int] = set()

    async def main(self) -> int:
        work = [
            asyncio.create_task(self._poll()),
            asyncio.create_task(self._after_start(self.handling.run)),
            asyncio.create_task(self._after_start(self._beat)),
            asyncio.create_task(self._after_start(self._set_menus)),
            stop := asyncio.create_task(self.stopping.wait()),
        ]
        needed = {work[0], work[1], work[2], stop}
        try:
            done, _ = await asyncio.wait(needed, return_when=asyncio.FIRST_COMPLETED)
            return self._why_it_ended(next((task for task in done if task is not stop), stop))
        finally:
            for task in work:
                task.cancel()
            await asyncio.wait(work, timeout=GRACE)
            await self.handling.end(GRACE)
            if self._started.is_set():
                await self._leave()
            log.info("the bot has stopped", bot=self.bot.id)

    def _why_it_ended(self, task: asyncio.Task[Any]) -> int:
        error = task.exception()
        match error:
            case None:
                return 0
            case PolledByAnother() | NotMigrated() | BadInput():
                return _say(str(error))
            case BotStopped():
                return _say(f"Telegram refuses the token of bot {self.bot.id}: @BotFather shows the one that works")
        raise error

    # -- the parts

    async def _poll(self) -> None:
        for pause in pauses(0.5):
            try:
                me = await self.bot(GetMe())
                await self.bot(DeleteWebhook())
                break
            except BotStopped:
                raise
            except (Outcome, Later) as error:
                log.warning("Telegram cannot be reached", error=one_line(error), again_in=pause)
                await asyncio.sleep(pause)
        self.bot._me = me
        log.info("the bot is up", bot=self.bot.id, username=me.username)
        await self.polling.run()

    def _ready(self) -> None:
        """In a thread: nobody else polls, and the database has our tables."""
        schema.require(self.here.database)
        self.poller.take()

    def _stored(self) -> None:
        self._told.clear()
        self._started.set()
        self.handling.wake()

    async def _after_start(self, part: Any) -> None:
        await self._started.wait()
        await part()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.poller.lease / 3)
            try:
                await asyncio.to_thread(self.poller.beat)
            except DatabaseTrouble as error:
                if not is_passing(error):
                    raise

    async def _leave(self) -> None:
        try:
            await asyncio.wait_for(asyncio.to_thread(self.poller.leave), THREAD_GRACE)
        except (TimeoutError, *DatabaseTrouble) as error:
            log.warning("the next poller has to wait for our beat to end", error=one_line(error))

    async def _set_menus(self) -> None:
        """Each person's menu is theirs; one that cannot be set now is set at the next start."""
        try:
            await commands.set_default_menus(self.bot)
            for person in await asyncio.to_thread(people.with_roles, self.here):
                if person.role is not Role.USER or person.language is not None:
                    await self._set_menu(person)
        except (Outcome, Unavailable, *DatabaseTrouble) as error:
            log.warning("the menus could not be set", error=one_line(error))

    async def _set_menu(self, person: Person) -> None:
        try:
            await commands.set_menu(self.bot, person)
        except Outcome as error:
            log.debug("a menu could not be set", user=person.id, error=one_line(error))

    # -- one update

    async def _handle(self, waiting: Waiting) -> None:
        update = Update.model_validate(waiting.payload, context={"bot": self.bot})
        await self.dispatcher.feed_update(self.bot, update)

    async def _put_aside(self, waiting: Waiting, why: str) -> None:
        """The admins learn it by an alarm (chronos/alarms.py); whoever wrote is told here."""
        user, chat, words = _author(waiting.payload)
        if user is None or chat != user.get("id"):
            return
        language = self._language_of(user)
        what = words[:QUOTED] if words else plain(language, "put aside.press")
        await self._send(chat, say(language, "put aside", what=what))

    async def _tell_away(self, updates: list[dict[str, Any]]) -> None:
        """Each chat once, until PostgreSQL was back."""
        for update in updates:
            chat = order_key(update)
            user, _, _ = _author(update)
            if user is None or chat in self._told:
                continue
            self._told.add(chat)
            try:
                await self._send(chat, say(self._language_of(user), "away"))
            except Outcome as error:
                log.info("nobody could be told that PostgreSQL is away", chat=chat, error=one_line(error))

    async def _send(self, chat: int, text: str) -> None:
        await self.bot(SendMessage(chat_id=chat, text=text, parse_mode="HTML"))

    def _met(self, person: Person) -> None:
        self._languages[person.id] = person.speaks
        self._languages.move_to_end(person.id)
        if len(self._languages) > MOST_REMEMBERED:
            self._languages.popitem(last=False)

    def _language_of(self, user: dict[str, Any]) -> str:
        return self._languages.get(user["id"]) or language_for(None, user.get("language_code"))


def _author(update: dict[str, Any]) -> tuple[dict[str, Any] | None, int, str]:
    """Who wrote or pressed, in which chat, which words."""
    for kind in ("message", "callback_query"):
        content = update.get(kind)
        if isinstance(content, dict) and isinstance(content.get("from"), dict):
            return content["from"], order_key(update), str(content.get("text") or "")
    return None, 0, ""


def _say(words: str) -> int:
    sys.stderr.write(f"chronos: {words}\n")
    return EXIT_WRONG


def run() -> tuple[int, bool]:
    """Until it is asked to stop: the exit code, and whether all threads have ended."""
    logging.getLogger("aiogram.event").setLevel(logging.WARNING)
    here, bot = runtime(), telegram.bot()
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="bot")
    loop = asyncio.new_event_loop()
    loop.set_default_executor(threads)
    try:
        code = loop.run_until_complete(_until_asked(App(here, bot)))
    finally:
        waiting = threading.Thread(target=threads.shutdown, daemon=True)
        waiting.start()
        waiting.join(THREAD_GRACE)
    return code, not waiting.is_alive()


async def _until_asked(app: App) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, app.stopping.set)
    try:
        return await app.main()
    finally:
        await telegram.close()
