"""Who may do what: one outer middleware lets strangers do nothing but /start, an inner one asks each handler for the
role that it declares. A handler that declares none is for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiogram import BaseMiddleware, Bot
from aiogram.dispatcher.flags import get_flag
from aiogram.types import CallbackQuery, Chat, TelegramObject, Update

from chronos import people
from chronos.bot.talk import Talk
from chronos.bot.texts import plain_words_of, words_of
from chronos.errors import BadInput
from chronos.models.user import Role
from chronos.people import Person
from chronos.runtime import Runtime

Handler = Callable[[TelegramObject, dict[str, Any]], Awaitable[Any]]

ANYONE = "anyone"


def may(role: Role | str) -> dict[str, Any]:
    """The flags of a handler: who may use it. ANYONE: strangers too."""
    return {"role": role}


class Access(BaseMiddleware):
    def __init__(self, runtime: Runtime, met: Callable[[Person], None]) -> None:
        """met(person): they wrote just now."""
        self._runtime, self._met = runtime, met

    async def __call__(self, handler: Handler, event: TelegramObject, data: dict[str, Any]) -> Any:
        assert isinstance(event, Update)  # noqa: S101
        found = event.message or event.callback_query or event.my_chat_member
        if found is None or found.from_user is None or found.from_user.is_bot:
            return None
        user = found.from_user
        person = await asyncio.to_thread(
            people.meet, self._runtime, user.id, user.first_name, user.username, user.language_code
        )
        self._met(person)
        data["talk"] = talk = _talk(event, person, data["bot"])
        try:
            if person.role is None and not _is_for_strangers(event):
                return await _refuse(talk)
            return await handler(event, data)
        except BadInput as error:
            if talk.query is not None:
                return await talk.answer(plain_words_of(error, talk.language), alert=True)
            return await talk.reply(words_of(error, talk.language))
        finally:
            await talk.answer()


class Roles(BaseMiddleware):
    """Behind the handler's filters: its own declaration, asked for each message and each press."""

    async def __call__(self, handler: Handler, event: TelegramObject, data: dict[str, Any]) -> Any:
        role, talk = get_flag(data, "role"), data["talk"]
        assert isinstance(talk, Talk)  # noqa: S101
        if role == ANYONE:
            return await handler(event, data)
        if role is not None and talk.person.may(role):
            return await handler(event, data)
        needed = talk.plain(f"role.{role or Role.ADMIN}")
        if talk.query is not None:
            return await talk.answer(talk.plain("not allowed", role=needed), alert=True)
        return await talk.reply(talk.say("not allowed", role=needed))


def _is_for_strangers(update: Update) -> bool:
    if update.message is not None:
        words = (update.message.text or "").split(maxsplit=1)
        return bool(words) and words[0].partition("@")[0].lower() == "/start" and update.message.chat.type == "private"
    return update.my_chat_member is not None


async def _refuse(talk: Talk) -> None:
    if talk.query is not None:
        await talk.answer(talk.plain("no access"), alert=True)
    elif talk.private:
        await talk.reply(talk.say("stranger.no", id=str(talk.person.id)))


def _talk(update: Update, person: Person, bot: Bot) -> Talk:
    query: CallbackQuery | None = update.callback_query
    message: Any = update.message or (query.message if query else None)
    chat: Chat | None = message.chat if message is not None else None
    if update.my_chat_member is not None:
        chat = update.my_chat_member.chat
    return Talk(
        bot,
        person,
        chat.id if chat is not None else person.id,
        chat is None or chat.type == "private",
        update.update_id,
        pressed=message.message_id if query is not None and message is not None else None,
        query=query.id if query is not None else None,
    )
