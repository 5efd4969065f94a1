"""Every call of every process passes here: budget by urgency, answers read by the table, secrets hidden.

What a caller gets is the method's result or one of Chronos' own outcomes: Later (nothing was sent, come again),
PermanentError, Ambiguous (a message may have arrived). Importing this module costs seconds: bots.py does it late.
"""

from __future__ import annotations

import asyncio
import random
import re
from functools import partial
from typing import Any, cast

import structlog
from aiogram import Bot
from aiogram.client.session.middlewares.base import BaseRequestMiddleware, NextRequestMiddlewareType
from aiogram.client.telegram import PRODUCTION, TelegramAPIServer
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramMigrateToChat,
    TelegramNetworkError,
    TelegramRetryAfter,
)
from aiogram.methods import Response, TelegramMethod
from aiogram.methods.base import TelegramType
from aiogram.types import User

from chronos import redaction
from chronos.db import Database, DatabaseTrouble
from chronos.errors import ChronosError, NotSent, Outcome, PermanentError, Unavailable, one_line
from chronos.telegram import chats, methods, urgency
from chronos.telegram.budget import BotStopped, Budget, Passage
from chronos.telegram.outcomes import DEFAULT_RETRY_AFTER, Answer, Move, rule_for
from chronos.telegram.reasons import SENTENCES, ambiguous, later, permanent
from chronos.telegram.sends import prepared
from chronos.telegram.session import NoAnswer, NotNow, Session, last_look

log = structlog.get_logger("chronos.telegram")

#: Tries of a call that may be repeated, and the seconds before the second; the third comes after twice of it.
TRIES, PAUSE_SECONDS = 3, 0.5
#: Seconds until a task tries again that could not reach Telegram.
UNREACHABLE_SECONDS = 10.0
#: Seconds in which a fact is to be kept while PostgreSQL is away.
KEEP_SECONDS = 5.0


class AnotherPoller(ChronosError):
    """Somebody else polls with this token."""


class MessageGone(PermanentError):
    """The message to change is not there any more, or cannot be changed: a known end, nothing to repeat."""

    reason = "message gone"


class Sender(BaseRequestMiddleware):
    def __init__(self, database: Database, budget: Budget, *, paid: bool = False) -> None:
        self._database, self.budget, self._paid = database, budget, paid

    async def __call__(
        self,
        make_request: NextRequestMiddlewareType[TelegramType],
        bot: Bot,
        method: TelegramMethod[TelegramType],
    ) -> Response[TelegramType]:
        call = _Call(self, bot, self._payable(method))
        return cast("Response[TelegramType]", await call.make(make_request))

    def _payable(self, method: TelegramMethod[TelegramType]) -> TelegramMethod[TelegramType]:
        if self._paid and methods.can_be_paid(method) and getattr(method, "allow_paid_broadcast", None) is None:
            return method.model_copy(update={"allow_paid_broadcast": True})
        return method

    async def admit(self, method: TelegramMethod[Any], ends: float | None = None) -> Passage:
        """A slot for this call by the current urgency; `ends` is of the loop's clock."""
        how, name = urgency.current(), method.__api_method__
        return await self.budget.admit(
            chat_of(method),
            methods.counts(name),
            how,
            asyncio.get_running_loop().time() + how.patience if ends is None else ends,
            size=methods.size(method),
            unpaid=not methods.can_be_paid(method),
        )

    async def keep(self, what: Any, *facts: Any) -> None:
        """Write what a call taught us. PostgreSQL being away changes nothing about the call's own outcome."""

        def write() -> None:
            with self._database.transaction() as connection:
                what(connection, *facts)

        try:
            await asyncio.to_thread(self._database.persist, write, deadline=KEEP_SECONDS)
        except (Unavailable, *DatabaseTrouble) as error:
            log.warning("not kept", what=what.__name__, facts=facts, error=one_line(error))

    async def close(self) -> None:
        self.budget.close()


class _Call:
    """The life of one call, from its slot to its outcome."""

    def __init__(self, sender: Sender, bot: Bot, method: TelegramMethod[Any]) -> None:
        self.sender, self.bot, self.method = sender, bot, method
        self.name = method.__api_method__
        self.makes = methods.makes(self.name)
        self.urgency = urgency.current()
        self.prepared = prepared.get()
        #: A call under an intent is never repeated here: the intent must say at every moment what may have happened.
        self.under_intent = self.prepared is not None
        self.ends = asyncio.get_running_loop().time() + self.urgency.patience
        self.moved = False
        self.looks = 0

    @property
    def chat(self) -> int | str | None:
        return chat_of(self.method)

    async def make(self, make_request: NextRequestMiddlewareType[Any]) -> Any:
        attempt = 0
        while True:
            passage = await self._be_admitted()
            look = None if passage is None else partial(self.sender.budget.can_leave, passage)
            before = last_look.set(look)
            attempt += 1
            try:
                result = await make_request(self.bot, self.method)
            except (Outcome, NotSent):
                raise
            except NotNow:
                attempt -= 1
                self.prepared = passage  # its slot may still be good
                continue
            except Exception as error:
                answer = read(error)
                if answer is None:
                    raise NotSent(one_line(error)) from error
                again, result = await self._decide(answer, attempt, error)
                if again:
                    continue
            finally:
                last_look.reset(before)
            if self.name == "getMe" and isinstance(result, User):
                await self.sender.keep(
                    chats.bot_works, self.bot.id, result.username, result.full_name, self.sender._paid
                )
            return result

    async def _be_admitted(self) -> Passage | None:
        if methods.is_free(self.name):
            return None
        budget = self.sender.budget
        passage, self.prepared = self.prepared, None
        while passage is None or not await budget.is_good(passage, self.urgency):
            self.looks += 1
            passage = await self.sender.admit(self.method, self.ends)
            passage.looks = self.looks
        if passage.moved is not None and passage.moved != self.chat:
            self._readdress(passage.moved)
        return passage

    def _readdress(self, chat: int) -> None:
        self.method = self.method.model_copy(update={"chat_id": chat})

    async def _decide(self, answer: Answer, attempt: int, error: Exception) -> tuple[bool, Any]:
        """(True, _): make the call again; (False, result): it counts as answered. Raises the outcome otherwise."""
        rule = rule_for(answer)
        move, bot, chat = rule.move, self.bot.id, self.chat
        log.info(
            f"{self.name}: {rule.reason or move.name.lower()}",
            bot=bot, chat=chat, status=answer.status, said=answer.description[:200],
        )  # fmt: skip
        match move:
            case Move.WAIT:
                seconds = DEFAULT_RETRY_AFTER if answer.retry_after is None else answer.retry_after
                if methods.is_free(self.name):
                    # Polling has a hold of its own: what it waits for costs the messages nothing.
                    await asyncio.sleep(min(seconds, self.urgency.patience))
                else:
                    await self.sender.budget.hold(chat, seconds)
                if self.under_intent:
                    raise later("busy", seconds + random.random()) from error
                return True, None
            case Move.DONE:
                return False, True
            case Move.TOO_LATE:
                return False, False
            case Move.GONE:
                raise MessageGone(SENTENCES[rule.reason]) from error
            case Move.MOVE if answer.migrate_to is not None and not self.moved and isinstance(chat, int):
                self.moved = True
                await self.sender.keep(chats.move, bot, chat, answer.migrate_to)
                self._readdress(answer.migrate_to)
                return True, None
            case Move.UNREACHABLE:
                if isinstance(chat, int) and chat > 0:
                    await self.sender.keep(chats.mark_blocked, bot, chat, rule.reason)
                raise permanent(rule.reason) from error
            case Move.REFUSE | Move.MOVE:
                raise permanent(rule.reason) from error
            case Move.STOP:
                log.error("Telegram refuses the bot's token: it stops, its tasks stay pending", bot=bot)
                await self.sender.keep(chats.stop_bot, bot, SENTENCES["stopped"])
                raise BotStopped from error
            case Move.CONFLICT:
                raise AnotherPoller("another process polls with this bot's token: stop one of the two") from error
            case Move.UNSURE if self.makes:
                raise ambiguous(rule.reason) from error
        if self.under_intent or attempt >= TRIES:
            raise later("unreachable", UNREACHABLE_SECONDS * (1 + random.random())) from error
        await asyncio.sleep(PAUSE_SECONDS * attempt * (1 + random.random() * 0.2))
        return True, None


def chat_of(method: TelegramMethod[Any]) -> int | str | None:
    chat: int | str | None = getattr(method, "chat_id", None)
    return int(chat) if isinstance(chat, str) and re.fullmatch(r"-?[0-9]{1,18}", chat) else chat


def read(error: Exception) -> Answer | None:
    """What the server answered, out of what aiogram made of it. None: the error is of our own making, nothing left."""
    status: int | None = getattr(error, "http_status", None)
    description = error.message if isinstance(error, TelegramAPIError | ClientDecodeError) else ""
    match error:
        case TelegramRetryAfter():
            return Answer(429, description, float(error.retry_after))
        case TelegramMigrateToChat():
            return Answer(400, description, migrate_to=error.migrate_to_chat_id)
        case NoAnswer():
            return Answer(None, str(error), reached=error.reached)
    if status is None:
        return Answer(None, str(error)) if isinstance(error, TelegramNetworkError) else None
    if status == 429:
        header = getattr(error, "retry_after_header", None)
        said = re.search(r"retry after (\d+)", description or "", re.IGNORECASE)
        after = header if header and header.isdigit() else said[1] if said else None
        return Answer(429, description or "", None if after is None else float(after))
    if 400 <= status < 500 and status != 413 and not isinstance(error, TelegramAPIError):
        # Refused, and the reason got lost on its way: asked again, Telegram says it again.
        return Answer(None, description, reached=False)
    return Answer(status, description or "")


def make_bot(
    token: str, database: Database, budget_database: Database, *, telegram_url: str | None = None, paid: bool = False
) -> tuple[Bot, Sender]:
    """A bot whose every call passes the sender. `budget_database` needs one connection, and keeps it."""
    redaction.hide(token)
    server = TelegramAPIServer.from_base(telegram_url) if telegram_url else PRODUCTION
    session = Session(api=server, limit=200)
    bot = Bot(token, session=session)
    sender = Sender(database, Budget(budget_database, bot.id, paid=paid), paid=paid)
    session.middleware.register(sender)
    return bot, sender
