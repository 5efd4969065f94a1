"""What no other router knows: buttons of cards, old buttons, unknown commands, plain words."""

from __future__ import annotations

from aiogram import Bot, F, Router
from aiogram.types import CallbackQuery, Message

from chronos import cards
from chronos.bot.access import may
from chronos.bot.talk import Talk
from chronos.models.user import Role


def router() -> Router:
    made = Router(name="rest")
    made.callback_query.register(drop, F.data == "drop", flags=may(Role.USER))
    made.callback_query.register(card, F.data.func(_is_of_a_card), flags=may(Role.USER))
    made.callback_query.register(old_button, flags=may(Role.USER))
    made.message.register(unknown, F.text.startswith("/"), flags=may(Role.USER))
    made.message.register(plain_words, flags=may(Role.USER))
    return made


def _is_of_a_card(data: str | None) -> bool:
    return data is not None and cards.Button.parse(data) is not None


async def drop(query: CallbackQuery, talk: Talk) -> None:
    await talk.reply(talk.say("dropped"))


async def card(query: CallbackQuery, talk: Talk, bot: Bot) -> None:
    assert query.data is not None  # noqa: S101
    if talk.pressed is None:
        await talk.answer(talk.plain("old button"))
        return
    place = cards.Place(bot.id, talk.chat, talk.pressed)
    is_admin = talk.person.may(Role.ADMIN)
    await talk.answer(await cards.press(query.data, place, talk.person.id, talk.language, is_admin=is_admin))


async def old_button(query: CallbackQuery, talk: Talk) -> None:
    await talk.answer(talk.plain("old button"), alert=True)


async def unknown(message: Message, talk: Talk) -> None:
    if talk.private:
        await talk.reply(talk.say("unknown"))


async def plain_words(message: Message, talk: Talk) -> None:
    if talk.private:
        await talk.reply(talk.say("plain"))
