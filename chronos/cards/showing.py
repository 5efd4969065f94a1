"""The message of a card: which one it is, and edited to what its task is now."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy import Connection, TextClause, text

from chronos import telegram
from chronos.cards.facts import CardFacts, facts_of
from chronos.cards.words import Words, words_of
from chronos.errors import Ambiguous, PermanentError, one_line
from chronos.models import FINAL
from chronos.runtime import runtime
from chronos.telegram import NOTICE, PROGRESS, Urgency, sending_as
from chronos.telegram.reasons import later
from chronos.telegram.sends import OTHER_BOT_SECONDS, Run

#: Edits of one `show`: a task that moves while it is being shown is shown again.
MOST_EDITS = 4
#: For which somebody who has other work waits for an edit.
IN_PASSING_SECONDS = 5.0

log = structlog.get_logger("chronos.cards")

_OPEN = text("""
insert into cards as c (task_id, bot_id, chat, message_id, locale, shown)
values (:task, :bot, :chat, :message, :locale, :shown)
on conflict (task_id) do update set bot_id = excluded.bot_id, chat = excluded.chat, message_id = excluded.message_id,
  locale = excluded.locale, shown = excluded.shown
""")

# A message that became the card of a later task shows that one.
_CARD = text("""
select c.bot_id, c.chat, c.message_id, c.locale, c.shown from cards c where c.task_id = :task
  and not exists (select from cards n where n.bot_id = c.bot_id and n.chat = c.chat and n.message_id = c.message_id
                  and n.task_id > c.task_id)
""")
_KEEP = text("update cards set shown = :shown where task_id = :task and message_id = :message")
_END = text("update cards set message_id = null, shown = null where task_id = :task and message_id = :message")


@dataclass(frozen=True)
class Card:
    bot_id: int
    chat: int
    message_id: int | None  #: null: it has ended, people deleted it or nobody can be reached there
    locale: str
    shown: str | None


@dataclass(frozen=True)
class _Look:
    card: Card
    words: Words


def open_card(
    connection: Connection,
    task_id: uuid.UUID,
    bot_id: int,
    chat: int,
    message_id: int,
    language: str,
    words: Words | None = None,
) -> None:
    """From now on the message is the card of the task. `words`: what it shows already, so that `show` need not say it
    again. In the caller's transaction.
    """
    connection.execute(
        _OPEN,
        {
            "task": task_id, "bot": bot_id, "chat": chat, "message": message_id, "locale": language,
            "shown": None if words is None else words.fingerprint,
        },
    )  # fmt: skip


async def show(task_id: uuid.UUID, *, urgency: Urgency = NOTICE) -> bool:
    """Edit the card to what its task is now; repeat it as you like. False: there is no card, or it has ended.

    Two processes may do it at once: each looks again behind its own edit, so the last one to edit has told the truth.
    """
    edited: str | None = None
    for _ in range(MOST_EDITS):
        look = await asyncio.to_thread(_look, task_id)
        if look is None:
            return False
        card, words = look.card, look.words
        if words.fingerprint == (card.shown if edited is None else edited):
            return True
        try:
            await _edit(card, words, urgency)
        except PermanentError:
            await asyncio.to_thread(_write, _END, {"task": task_id, "message": card.message_id})
            return False
        edited = words.fingerprint
        facts = {"task": task_id, "message": card.message_id, "shown": edited}
        await asyncio.to_thread(_write, _KEEP, facts)
    return True


async def show_in_passing(task_id: uuid.UUID) -> bool | None:
    """`show`, if that can be had at once. None: it could not; the notice shows the end, so nobody misses it."""
    try:
        return await asyncio.wait_for(show(task_id, urgency=PROGRESS), IN_PASSING_SECONDS)
    except Exception as error:
        log.debug("a card is not edited", task=str(task_id), error=one_line(error))
        return None


async def send_anew(ctx: Run, task_id: uuid.UUID, urgency: Urgency = NOTICE) -> bool:
    """A message for a task that has no card; it becomes the card. False: its end needs no words.

    `ctx` is the run of the notice: its ledger keeps the message from being sent twice.
    """
    found = await asyncio.to_thread(_facts_to_tell, task_id)
    if found is None:
        return False
    facts, chat = found
    words = words_of(facts, facts.language)
    from aiogram.methods import SendMessage

    method = SendMessage(chat_id=chat, text=words.text, reply_markup=words.keyboard)
    try:
        sent = await telegram.send(ctx, "notice", method, urgency=urgency)
    except Ambiguous:
        # A notice that comes twice is better than one that never comes.
        sent = await telegram.send(ctx, "notice again", method, urgency=urgency)
    if sent.message_id is not None:
        await asyncio.to_thread(_keep_sent, facts, words, sent)
    return True


_SPOKE = text("""
select exists (select from sends s where s.task_id = :task and s.state = 'sent' and s.chat = :chat)
""")


def _facts_to_tell(task_id: uuid.UUID) -> tuple[CardFacts, int] | None:
    with runtime().database.statement() as connection:
        facts = facts_of(connection, runtime(), task_id)
        if facts is None or facts.task.chat is None or facts.task.status not in FINAL:
            return None
        spoke = connection.execute(_SPOKE, {"task": task_id, "chat": facts.task.chat}).scalar_one()
    if facts.task.status == "completed" and spoke:
        # What was asked for has come to the chat itself.
        return None
    return facts, facts.task.chat


def _keep_sent(facts: CardFacts, words: Words, sent: telegram.Sent) -> None:
    bot, _ = telegram.this_bot()
    with runtime().database.statement() as connection:
        chat = sent.chat if sent.chat is not None else facts.task.chat
        assert chat is not None and sent.message_id is not None  # noqa: S101
        open_card(connection, facts.task.id, bot.id, chat, sent.message_id, facts.language, words)


async def _edit(card: Card, words: Words, urgency: Urgency) -> None:
    bot, _ = await asyncio.to_thread(telegram.this_bot)
    if card.bot_id != bot.id:
        raise later("other bot", OTHER_BOT_SECONDS)
    from aiogram.methods import EditMessageText

    with sending_as(urgency):
        await bot(
            EditMessageText(chat_id=card.chat, message_id=card.message_id, text=words.text, reply_markup=words.keyboard)
        )


def card_of(connection: Connection, task_id: uuid.UUID) -> Card | None:
    row = connection.execute(_CARD, {"task": task_id}).one_or_none()
    return None if row is None else Card(**row._mapping)


def _look(task_id: uuid.UUID) -> _Look | None:
    with runtime().database.statement() as connection:
        card = card_of(connection, task_id)
        if card is None or card.message_id is None:
            return None
        facts = facts_of(connection, runtime(), task_id)
    return None if facts is None else _Look(card, words_of(facts, card.locale))


def _write(statement: TextClause, facts: dict[str, Any]) -> None:
    with runtime().database.statement() as connection:
        connection.execute(statement, facts)
