"""/status and /tasks: what became of what a person asked for, and why it waits. Admins see everybody's."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterator
from datetime import datetime

from aiogram import F, Router
from aiogram.filters import Command, CommandObject
from aiogram.types import CallbackQuery, Message

from chronos import cards, failures, task_list
from chronos.bot.access import may
from chronos.bot.routers.times import ago
from chronos.bot.talk import Keyboard, Talk
from chronos.bot.texts import Html, lines
from chronos.cards.titles import title_of
from chronos.engine import tasks
from chronos.models import FINAL, TaskStateRecord
from chronos.models.task import short_id
from chronos.models.user import Role
from chronos.runtime import Runtime
from chronos.task_facts import Facts, facts_about
from chronos.task_list import TaskLine
from chronos.telegram import REPLY

#: Tasks of one message.
SHOWN, PAGE = 5, 8
#: Moments of one story, the newest.
MOST_MOMENTS = 12

ICONS = {
    "pending": "⏳",
    "in_progress": "▶️",
    "completed": "✅",
    "failed": "❌",
    "unknown": "❓",
    "cancelled": "🚫",
    "expired": "⌛",
}
_ID = "([A-Za-z0-9_-]{22})"


def router() -> Router:
    made = Router(name="tasks")
    made.message.register(status, Command("status"), flags=may(Role.USER))
    made.message.register(list_, Command("tasks"), flags=may(Role.USER))
    made.callback_query.register(
        page, F.data.regexp(rf"^t:{_ID}?$").as_("found"), flags=may(Role.USER)
    )  # fmt: skip
    made.callback_query.register(open_, F.data.regexp(rf"^ts:{_ID}$").as_("found"), flags=may(Role.USER))
    made.callback_query.register(cancel_in_story, F.data.regexp(rf"^tc:{_ID}$").as_("found"), flags=may(Role.USER))
    made.callback_query.register(
        cancel_in_list, F.data.regexp(rf"^tx:{_ID}:{_ID}?$").as_("found"), flags=may(Role.USER)
    )
    return made


async def status(message: Message, talk: Talk, command: CommandObject, here: Runtime) -> None:
    if command.args:
        await _show_story(talk, here, command.args.split()[0])
        return
    found = await talk.run(task_list.newest, here, user_id=talk.person.id, asked_for=True, most=SHOWN)
    if not found:
        await talk.reply(talk.say("tasks.none"))
        return
    buttons = [(f"{ICONS[line.status]} {line.short_id}", f"ts:{pack(line.id)}") for line in found]
    keyboard = [buttons[start : start + 2] for start in range(0, len(buttons), 2)]
    await talk.reply(lines(talk.say("tasks.title"), *(line_of(talk, line) for line in found)), keyboard)


async def list_(message: Message, talk: Talk, here: Runtime) -> None:
    await show_page(talk, here, None)


async def page(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime) -> None:
    await show_page(talk, here, unpack(found[1]))


async def open_(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime) -> None:
    await _show_story(talk, here, str(unpack(found[1])))


async def cancel_in_story(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime) -> None:
    id_ = str(unpack(found[1]))
    await talk.answer(await cancel(talk, here, id_))
    await _show_story(talk, here, id_)


async def cancel_in_list(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime) -> None:
    await talk.answer(await cancel(talk, here, str(unpack(found[1]))))
    await show_page(talk, here, unpack(found[2]))


async def cancel(talk: Talk, here: Runtime, id_: str) -> str:
    """Cancel a task of theirs (an admin: anybody's); what to tell, in one line without formatting."""
    key, record = await talk.run(_cancel, here, id_, talk)
    if key != "cancel.late":
        await cards.show(record.id, urgency=REPLY)
    fields = {"title": title_of(record, talk.language)}
    fields |= {"state": talk.plain(f"state.{record.status}")} if key == "cancel.late" else {"id": short_id(record.id)}
    return talk.plain(key, **fields)


def _cancel(here: Runtime, id_: str, talk: Talk) -> tuple[str, TaskStateRecord]:
    with here.database.statement() as connection:
        record = tasks.find(connection, id_, user_id=_whose(talk))
        status = tasks.cancel(connection, record.id, f"user {talk.person.id}")
    return "cancel.late" if status is None else "cancel.done" if status == "cancelled" else "cancel.asked", record


# ------------------------------------------------------------------------------------------------- lists


async def show_page(talk: Talk, here: Runtime, older_than: uuid.UUID | None) -> None:
    found = await talk.run(
        task_list.newest, here, user_id=_whose(talk), asked_for=True, older_than=older_than, most=PAGE + 1
    )
    shown, more = found[:PAGE], len(found) > PAGE
    if not shown:
        await talk.reply(talk.say("tasks.none"), [[(talk.plain("tasks.newest"), "t:")]] if older_than else [])
        return
    here_ = pack(older_than) if older_than else ""
    buttons = [
        (talk.plain("tasks.cancel", id=line.short_id), f"tx:{pack(line.id)}:{here_}")
        for line in shown
        if line.status not in FINAL
    ]
    keyboard: list[list[tuple[str, str]]] = [buttons[start : start + 2] for start in range(0, len(buttons), 2)]
    turns = [(talk.plain("tasks.newest"), "t:")] if older_than else [(talk.plain("refresh"), "t:")]
    keyboard.append(turns + ([(talk.plain("tasks.older"), f"t:{pack(shown[-1].id)}")] if more else []))
    title = talk.say("tasks.title.all" if talk.person.may(Role.ADMIN) else "tasks.title")
    await talk.reply(lines(title, *(line_of(talk, line) for line in shown)), keyboard)


def line_of(talk: Talk, line: TaskLine) -> Html:
    state = talk.plain(f"state.{line.status}")
    if line.status == "in_progress" and line.progress and line.progress.get("total"):
        state += f", {100 * line.progress['done'] / line.progress['total']:.0f} %"
    return talk.say(
        "tasks.line", icon=ICONS[line.status], title=title_of(line, talk.language), id=line.short_id, state=state,
        when=ago(talk, line.created_at, line.at),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------- story


async def _show_story(talk: Talk, here: Runtime, id_: str) -> None:
    card, around = await talk.run(_look, here, id_, talk)
    task = card.task
    moments = list(_moments(talk, task, around))[-MOST_MOMENTS:]
    said = [
        talk.say("status.event", when=ago(talk, at, around.now), what=what)
        for at, what in sorted(moments, key=lambda moment: moment[0])
    ]
    keyboard: Keyboard = [
        [(talk.plain("refresh"), f"ts:{pack(task.id)}")]
        + ([(talk.plain("cancel"), f"tc:{pack(task.id)}")] if task.status not in FINAL else []),
        [(talk.plain("back"), "t:")],
    ]
    now = talk.say("status.now", words=cards.words_of(card, talk.language).text, id=str(task.id))
    await talk.reply(lines(now, Html(""), talk.say("status.story"), *said), keyboard)


def _look(here: Runtime, id_: str, talk: Talk) -> tuple[cards.CardFacts, Facts]:
    with here.database.statement() as connection:
        record = tasks.find(connection, id_, user_id=_whose(talk))
        card = cards.facts_of(connection, here, record.id) or cards.CardFacts(record)
        return card, card.around or facts_about(connection, here, card.task)


def _moments(talk: Talk, task: TaskStateRecord, facts: Facts) -> Iterator[tuple[datetime, str]]:
    """The task's life in words; what only a programmer could read is left out."""
    yield task.created_at, talk.plain("event.accepted")
    for event in facts.events:
        match event.kind:
            case "retry":
                why = failures.for_a_chat(event.detail, None, talk.language)
                yield event.at, talk.plain("event.retry", why=why) if why else talk.plain("event.retry.silent")
            case "later":
                why = failures.for_a_chat(event.detail, None, talk.language)
                yield event.at, talk.plain("event.later", why=why) if why else talk.plain("event.later.silent")
            case "crash" | "revived" | "unknown" | "arrived":
                yield event.at, talk.plain(f"event.{event.kind}")
            case "send again":
                yield event.at, talk.plain("event.revived")
            case "hand_back" | "handed back":
                yield event.at, talk.plain("event.handed back")
            case "cancel asked":
                yield event.at, talk.plain("event.cancel")
    if task.started_at is not None:
        again = task.attempt > 1
        yield (
            task.started_at,
            (
                talk.plain("event.started.again", count=task.attempt, most=task.max_attempts)
                if again
                else talk.plain("event.started")
            ),
        )
    if task.finished_at is not None and task.status != "unknown":
        yield task.finished_at, talk.plain(f"state.{task.status}")


# --------------------------------------------------------------------------------------------------- ids


def _whose(talk: Talk) -> int | None:
    """None: everybody's."""
    return None if talk.person.may(Role.ADMIN) else talk.person.id


def pack(id_: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(id_.bytes).rstrip(b"=").decode()


def unpack(packed: str | None) -> uuid.UUID | None:
    return uuid.UUID(bytes=base64.urlsafe_b64decode(packed + "==")) if packed else None
