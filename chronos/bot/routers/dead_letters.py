"""/dlq: what failed for good, by cause; show, retry and clear by button."""

from __future__ import annotations

import re

from aiogram import F, Router
from aiogram.filters import Command
from aiogram.types import CallbackQuery, Message

from chronos import dead_letters, failures
from chronos.bot.access import may
from chronos.bot.inbox import Inbox
from chronos.bot.routers.times import ago
from chronos.bot.talk import Talk
from chronos.bot.texts import lines
from chronos.dead_letters import Cause, Choice
from chronos.models.task import short_id
from chronos.models.user import Role
from chronos.reports.texts import queue_name
from chronos.runtime import Runtime

#: Causes of one message.
MOST = 8

_OF_A_CAUSE = r"([0-9a-f]{1,8}):([a-z_]{1,30})$"


def router() -> Router:
    made = Router(name="dead letters")
    made.message.register(list_, Command("dlq"), flags=may(Role.ADMIN))
    made.callback_query.register(list_again, F.data == "dlq:", flags=may(Role.ADMIN))
    for name, verb in (("show", show), ("retry", retry), ("sure", sure), ("clear", clear)):
        found = F.data.regexp(rf"^dlq:{name}:{_OF_A_CAUSE}").as_("found")
        made.callback_query.register(verb, found, flags=may(Role.ADMIN))
    made.callback_query.register(try_again, F.data == "aside:again", flags=may(Role.ADMIN))
    made.callback_query.register(forget, F.data == "aside:forget", flags=may(Role.ADMIN))
    return made


async def list_(message: Message, talk: Talk, here: Runtime, inbox: Inbox) -> None:
    await _list(talk, here, inbox)


async def list_again(query: CallbackQuery, talk: Talk, here: Runtime, inbox: Inbox) -> None:
    await _list(talk, here, inbox)


async def show(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime, inbox: Inbox) -> None:
    cause = await _cause(talk, here, inbox, found)
    if cause is None:
        return
    data = f"{cause.cause}:{cause.queue}"
    said = talk.say(
        "dlq.cause", queue=queue_name(cause.queue, talk.language), count=cause.count, why=_why(talk, cause),
        last=ago(talk, cause.last), id=short_id(cause.example),
    )  # fmt: skip
    keyboard = [
        [(talk.plain("dlq.retry", count=cause.count), f"dlq:retry:{data}")],
        [(talk.plain("dlq.clear", count=cause.count), f"dlq:sure:{data}")],
        [(talk.plain("back"), "dlq:")],
    ]
    await talk.reply(said, keyboard)


async def retry(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime, inbox: Inbox) -> None:
    done = await talk.run(dead_letters.retry, here, _choice(found), f"user {talk.person.id}")
    await talk.answer(talk.plain("dlq.retried", count=done.retried))
    await _list(talk, here, inbox)


async def sure(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime, inbox: Inbox) -> None:
    cause = await _cause(talk, here, inbox, found)
    if cause is None:
        return
    data = f"{cause.cause}:{cause.queue}"
    keyboard = [
        [(talk.plain("dlq.clear yes"), f"dlq:clear:{data}")],
        [(talk.plain("back"), f"dlq:show:{data}")],
    ]
    await talk.reply(talk.say("dlq.sure", count=cause.count), keyboard)


async def clear(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime, inbox: Inbox) -> None:
    gone = await talk.run(dead_letters.clear, here, _choice(found))
    await talk.answer(talk.plain("dlq.cleared", count=gone))
    await _list(talk, here, inbox)


async def try_again(query: CallbackQuery, talk: Talk, here: Runtime, inbox: Inbox) -> None:
    await talk.run(inbox.try_again)
    await talk.answer(talk.plain("dlq.aside.again.done"))
    await _list(talk, here, inbox)


async def forget(query: CallbackQuery, talk: Talk, here: Runtime, inbox: Inbox) -> None:
    await talk.run(inbox.forget_aside)
    await talk.answer(talk.plain("dlq.aside.forgotten"))
    await _list(talk, here, inbox)


async def _list(talk: Talk, here: Runtime, inbox: Inbox) -> None:
    found, aside = await talk.run(dead_letters.causes, here), await talk.run(inbox.aside)
    said = [
        talk.say(
            "dlq.line", number=number, queue=queue_name(cause.queue, talk.language), count=cause.count,
            why=_why(talk, cause),
        )
        for number, cause in enumerate(found[:MOST], start=1)
    ]  # fmt: skip
    if len(found) > MOST:
        said.append(talk.say("dlq.more", count=len(found) - MOST))
    buttons = [
        (talk.plain("dlq.show", number=number), f"dlq:show:{cause.cause}:{cause.queue}")
        for number, cause in enumerate(found[:MOST], start=1)
    ]
    keyboard = [buttons[start : start + 2] for start in range(0, len(buttons), 2)]
    if aside:
        said.append(talk.say("dlq.aside", count=aside))
        keyboard.append(
            [(talk.plain("dlq.aside.again"), "aside:again"), (talk.plain("dlq.aside.forget"), "aside:forget")]
        )
    head = talk.say("dlq", count=sum(cause.count for cause in found)) if found else talk.say("dlq.none")
    await talk.reply(lines(head, *said), [*keyboard, [(talk.plain("refresh"), "dlq:")]])


async def _cause(talk: Talk, here: Runtime, inbox: Inbox, found: re.Match[str]) -> Cause | None:
    """None: it is gone, and the list was shown instead."""
    causes = await talk.run(dead_letters.causes, here)
    cause = next((cause for cause in causes if (cause.cause, cause.queue) == (found[1], found[2])), None)
    if cause is None:
        await talk.answer(talk.plain("dlq.gone"))
        await _list(talk, here, inbox)
    return cause


def _choice(found: re.Match[str]) -> Choice:
    return Choice(queue=found[2], cause=found[1])


def _why(talk: Talk, cause: Cause) -> str:
    """For an admin: words that we have no translation for are quoted, unless only a programmer could read them."""
    said = failures.known(cause.reason, cause.error_class, talk.language)
    if said is None and not failures.is_technical(cause.reason, cause.error_class):
        said = failures.quoted(" ".join(cause.reason.split()), talk.language)
    return said or talk.plain("dlq.inside", command=f"chronos dlq show {short_id(cause.example)}")
