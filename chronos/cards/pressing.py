"""What a press on a card's button does: one guarded verb of the engine, an answer in words, the card shown anew."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass

from sqlalchemy import Connection

from chronos.cards.facts import facts_of
from chronos.cards.showing import open_card, show
from chronos.engine import sends, tasks
from chronos.models import TaskStateRecord
from chronos.models.buttons import Button, Press, mark_of
from chronos.models.new_task import NewTask
from chronos.runtime import runtime
from chronos.telegram import REPLY

_ANSWERS = {
    "ru": {
        "gone": "Этой задачи больше нет", "not yours": "Это чужая задача", "too late": "Уже решено: вот как сейчас",
        "cancelled": "Отменено", "stopping": "Останавливаю", "retried": "Пробую снова", "again": "Отправляю ещё раз",
        "arrived": "Записал: дошло", "pdf": "Готовлю PDF", "no button": "Эта кнопка больше не действует",
    },
    "en": {
        "gone": "This task is no longer there", "not yours": "This is somebody else's task",
        "too late": "Decided already: this is how it is", "cancelled": "Cancelled", "stopping": "Stopping",
        "retried": "Trying again", "again": "Sending it again", "arrived": "Noted: it arrived",
        "pdf": "Making the PDF", "no button": "This button does nothing any more",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Place:
    """The message whose button was pressed."""

    bot_id: int
    chat: int
    message_id: int


async def press(data: str, place: Place, user_id: int, language: str, *, is_admin: bool = False) -> str:
    """Do what the button says and show its card anew; what to answer to the press, in a few words.

    A second press changes nothing. Only who asked for the task, the chat that it is for, or an admin decides.
    """
    button = Button.parse(data)
    if button is None:
        return _ANSWERS[language]["no button"]
    answer, shown = await asyncio.to_thread(_decide, button, place, user_id, language, is_admin)
    if shown is not None:
        await show(shown, urgency=REPLY)
    return _ANSWERS[language][answer]


def _decide(button: Button, place: Place, user_id: int, language: str, is_admin: bool) -> tuple[str, uuid.UUID | None]:
    """The answer's key, and the task whose card may have changed."""
    with runtime().database.transaction() as connection:
        facts = facts_of(connection, runtime(), button.task_id)
        if facts is None:
            return "gone", None
        task = facts.task
        if not (is_admin or user_id in (task.user_id, task.chat)):
            return "not yours", None
        if button.press is Press.PDF:
            return "pdf", _make_pdf(connection, task, place, user_id, language)
        # A message with a button is a card from now on, whatever became of the row.
        open_card(connection, task.id, place.bot_id, place.chat, place.message_id, language)
        return _done(connection, button, f"user {user_id}"), task.id


def _done(connection: Connection, button: Button, by: str) -> str:
    id_ = button.task_id
    match button.press:
        case Press.CANCEL:
            status = tasks.cancel(connection, id_, by)
            return "too late" if status is None else "cancelled" if status == "cancelled" else "stopping"
        case Press.RETRY:
            return "retried" if tasks.revive(connection, [id_], by) else "too late"
        case Press.AGAIN if not button.mark:
            return "again" if tasks.revive(connection, [id_], by) else "too late"
        case Press.ARRIVED if not button.mark:
            return "arrived" if tasks.mark_arrived(connection, id_, by) else "too late"
    key = next((key for key, _ in sends.unknown(connection, id_) if mark_of(key) == button.mark), None)
    if key is None:
        return "too late"
    if button.press is Press.AGAIN:
        return "again" if tasks.send_again(connection, id_, key, by) else "too late"
    return "arrived" if tasks.go_on(connection, id_, key, by) else "too late"


def _make_pdf(connection: Connection, report: TaskStateRecord, place: Place, user_id: int, language: str) -> uuid.UUID:
    """The same figures as PDF; the message becomes its card. A second tap gives the same task."""
    params = {**report.params, "parts": ["pdf"], "of": str(report.id)}
    new = NewTask(
        report.queue, report.task_name, params, user_id=user_id, bot_id=place.bot_id, chat=place.chat,
        idempotency_key=f"pdf:{report.id}",
    )  # fmt: skip
    done = runtime().submit(new, session=connection)[0]
    open_card(connection, done.id, place.bot_id, place.chat, place.message_id, language)
    return done.id
