"""/queues: what each queue does; pause and resume by button."""

from __future__ import annotations

import re
from datetime import timedelta

from aiogram import F, Router
from aiogram.filters import Command
from aiogram.types import CallbackQuery, Message

from chronos import queue_control
from chronos.bot.access import may
from chronos.bot.talk import Keyboard, Talk
from chronos.bot.texts import Html, lines
from chronos.language import language_of
from chronos.models.user import Role
from chronos.queue_control import QueueOverview
from chronos.queues import POLICIES
from chronos.reports.texts import queue_name
from chronos.runtime import Runtime

_NAMES = "|".join(POLICIES)


def router() -> Router:
    made = Router(name="queues")
    made.message.register(show, Command("queues"), flags=may(Role.ADMIN))
    made.callback_query.register(show_again, F.data == "q:", flags=may(Role.ADMIN))
    made.callback_query.register(
        ask, F.data.regexp(rf"^q:ask:({_NAMES})$").as_("found"), flags=may(Role.ADMIN)
    )  # fmt: skip
    made.callback_query.register(
        pause, F.data.regexp(rf"^q:pause:({_NAMES}):(\d{{1,6}})$").as_("found"), flags=may(Role.ADMIN)
    )
    made.callback_query.register(resume, F.data.regexp(rf"^q:resume:({_NAMES})$").as_("found"), flags=may(Role.ADMIN))
    return made


async def show(message: Message, talk: Talk, here: Runtime) -> None:
    await _show(talk, here)


async def show_again(query: CallbackQuery, talk: Talk, here: Runtime) -> None:
    await _show(talk, here)


async def ask(query: CallbackQuery, talk: Talk, found: re.Match[str]) -> None:
    name = found[1]
    keyboard: Keyboard = [
        [
            (talk.plain("queues.for minutes"), f"q:pause:{name}:600"),
            (talk.plain("queues.for hour"), f"q:pause:{name}:3600"),
        ],
        [(talk.plain("queues.until"), f"q:pause:{name}:0")],
        [(talk.plain("back"), "q:")],
    ]
    await talk.reply(talk.say("queues.how long", name=queue_name(name, talk.language)), keyboard)


async def pause(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime) -> None:
    seconds = int(found[2])
    await talk.run(queue_control.pause, here, found[1], timedelta(seconds=seconds) if seconds else None)
    await talk.answer(talk.plain("queues.stopped"))
    await _show(talk, here)


async def resume(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime) -> None:
    was = await talk.run(queue_control.resume, here, found[1])
    await talk.answer(talk.plain("queues.resumed" if was else "queues.not paused"))
    await _show(talk, here)


async def _show(talk: Talk, here: Runtime) -> None:
    found = await talk.run(queue_control.overview, here)
    said = [
        talk.say(
            "queues.line", icon=_icon(queue), name=queue_name(queue.queue, talk.language), state=_state(talk, queue)
        )
        for queue in found
    ]
    buttons = [_button(talk, queue) for queue in found]
    keyboard = [buttons[start : start + 2] for start in range(0, len(buttons), 2)]
    await talk.reply(lines(talk.say("queues"), *said), [*keyboard, [(talk.plain("refresh"), "q:")]])


def _button(talk: Talk, queue: QueueOverview) -> tuple[str, str]:
    name = queue_name(queue.queue, talk.language)
    if queue.paused:
        return talk.plain("queues.resume", name=name), f"q:resume:{queue.queue}"
    return talk.plain("queues.pause", name=name), f"q:ask:{queue.queue}"


def _icon(queue: QueueOverview) -> str:
    if queue.paused:
        return "⏸"
    return "🔴" if queue.due and not queue.workers else "▶️" if queue.running else "🟢"


def _state(talk: Talk, queue: QueueOverview) -> Html:
    speak, said = language_of(talk.language), []
    if queue.paused and queue.paused_until is not None:
        left = max(1.0, (queue.paused_until - queue.at).total_seconds())
        said.append(talk.say("queues.paused until", span=speak.duration(left)))
    elif queue.paused:
        said.append(talk.say("queues.paused"))
    if queue.due and not queue.workers:
        said.append(talk.say("queues.nobody"))
    if queue.waiting:
        said.append(talk.say("queues.waiting", count=queue.waiting))
    if queue.oldest_due_at is not None:
        said.append(talk.say("queues.oldest", span=speak.duration((queue.at - queue.oldest_due_at).total_seconds())))
    if queue.running:
        said.append(talk.say("queues.running", count=queue.running))
    if queue.dead:
        said.append(talk.say("queues.dead", count=queue.dead))
    return Html(", ".join(said or [talk.say("queues.idle")]))
