"""/report: the question for its period, and the task that the answer makes."""

from __future__ import annotations

import re
import uuid

from aiogram import Bot, F, Router
from aiogram.filters import Command, CommandObject
from aiogram.methods import SendMessage
from aiogram.types import CallbackQuery, Message
from sqlalchemy import text

from chronos import cards
from chronos.bot.access import may
from chronos.bot.routers.questions import REPORT, ask_period, ask_zone
from chronos.bot.talk import Talk
from chronos.errors import BadInput
from chronos.models.new_task import NewTask
from chronos.models.period import Period
from chronos.models.user import Role
from chronos.runtime import Runtime
from chronos.telegram import REPLY


def router() -> Router:
    made = Router(name="report")
    made.message.register(ask, Command("report", "generate_report"), flags=may(Role.USER))
    found = F.data.regexp(r"^r:(\d{1,20}):(today|\d{1,3}d)$").as_("found")
    made.callback_query.register(chosen, found, flags=may(Role.USER))
    return made


async def ask(message: Message, talk: Talk, command: CommandObject, here: Runtime, bot: Bot) -> None:
    period = Period.parse(command.args) if command.args else None
    if talk.person.time_zone is None:
        await ask_zone(talk, REPORT if period is None else f"{REPORT}{period}")
    elif period is None:
        await ask_period(talk)
    else:
        await make(talk, here, bot, str(period), talk.update_id)


async def chosen(query: CallbackQuery, talk: Talk, found: re.Match[str], here: Runtime, bot: Bot) -> None:
    await make(talk, here, bot, found[2], int(found[1]))


async def make(talk: Talk, here: Runtime, bot: Bot, period: str, nonce: int) -> None:
    """One task per nonce. The message whose button was pressed becomes its card; a command gets a new one."""
    params = {"period": period, "language": talk.language, "zone": talk.person.time_zone or "UTC"}
    new = NewTask(
        "report", "report", params, user_id=talk.person.id, bot_id=bot.id, chat=talk.chat,
        idempotency_key=f"bot:{bot.id}:{nonce}",
    )  # fmt: skip
    task_id, words = await talk.run(_accept, here, new, talk)
    if words is None:
        # Made by an earlier press, or by an earlier try of this update.
        await talk.answer(talk.plain("report.again"))
    elif talk.pressed is None:
        sent = await bot(SendMessage(chat_id=talk.chat, text=words.text, reply_markup=words.keyboard))
        await talk.run(_open, here, task_id, talk, bot.id, sent.message_id, words)
    else:
        await talk.answer(words.text)
    await cards.show(task_id, urgency=REPLY)


def _accept(here: Runtime, new: NewTask, talk: Talk) -> tuple[uuid.UUID, cards.Words | None]:
    """The task, and what its card says first; None: it has a card already."""
    with here.database.transaction() as connection:
        try:
            done = here.submit(new, session=connection)[0]
            task_id, created = done.id, done.created
        except BadInput as error:
            if error.reason != "key_taken":
                raise
            # Another period of the same question, or the same one in another language: the first press counts.
            task_id = connection.execute(
                text("select id from tasks where idempotency_key = :key"), {"key": new.idempotency_key}
            ).scalar_one()
            created = False
        if (
            not created
            and connection.execute(text("select 1 from cards where task_id = :id"), {"id": task_id}).scalar()
        ):
            return task_id, None
        facts = cards.facts_of(connection, here, task_id)
        assert facts is not None  # noqa: S101
        words = cards.words_of(facts, talk.language)
        if talk.pressed is not None and new.bot_id is not None:
            cards.open_card(connection, task_id, new.bot_id, talk.chat, talk.pressed, talk.language)
        return task_id, words


def _open(here: Runtime, task_id: uuid.UUID, talk: Talk, bot_id: int, message_id: int, words: cards.Words) -> None:
    with here.database.transaction() as connection:
        cards.open_card(connection, task_id, bot_id, talk.chat, message_id, talk.language, words)
