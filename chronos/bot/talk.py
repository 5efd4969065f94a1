"""One update's talk with one person: whoever handles it says things through this and need not know how."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from aiogram import Bot
from aiogram.methods import AnswerCallbackQuery, EditMessageText, SendMessage
from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup

from chronos.bot.texts import Html, plain, say
from chronos.people import Person
from chronos.telegram.sender import MessageGone

P = ParamSpec("P")
T = TypeVar("T")

#: Telegram's, in UTF-16 units; what is longer is cut at a line.
LONGEST_TEXT = 4096
LONGEST_ANSWER = 200

Keyboard = Sequence[Sequence[tuple[str, str]]]  #: rows of (what it says, what it sends)


@dataclass
class Talk:
    bot: Bot
    person: Person
    chat: int
    private: bool
    update_id: int
    pressed: int | None = None  #: the message whose button was pressed
    query: str | None = None  #: the press, to be answered once
    answered: bool = field(default=False, init=False)

    @property
    def language(self) -> str:
        return self.person.speaks

    def say(self, key: str, /, **fields: str | float) -> Html:
        return say(self.language, key, **fields)

    def plain(self, key: str, /, **fields: str | float) -> str:
        return plain(self.language, key, **fields)

    async def run(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The verbs are synchronous: they run in one of the bot's few threads."""
        return await asyncio.to_thread(verb, *args, **kwargs)

    async def reply(self, text: Html, keyboard: Keyboard = ()) -> int:
        """After a press its message becomes this text; else it is a new message. Returns the message's id."""
        markup = markup_of(keyboard)
        if self.pressed is not None:
            try:
                await self.bot(
                    EditMessageText(
                        chat_id=self.chat, message_id=self.pressed, text=cut(text), parse_mode="HTML",
                        reply_markup=markup,
                    )
                )  # fmt: skip
                return self.pressed
            except MessageGone:
                self.pressed = None
        return await self.new(text, keyboard)

    async def new(self, text: Html, keyboard: Keyboard = ()) -> int:
        sent = await self.bot(
            SendMessage(chat_id=self.chat, text=cut(text), parse_mode="HTML", reply_markup=markup_of(keyboard))
        )
        return sent.message_id

    async def answer(self, words: str = "", *, alert: bool = False) -> None:
        """Answer the press, once; without one there is nothing to answer."""
        if self.query is None or self.answered:
            return
        self.answered = True
        await self.bot(
            AnswerCallbackQuery(
                callback_query_id=self.query, text=words[:LONGEST_ANSWER] or None, show_alert=alert or None
            )
        )


def markup_of(keyboard: Keyboard) -> InlineKeyboardMarkup | None:
    if not keyboard:
        return None
    return InlineKeyboardMarkup(
        inline_keyboard=[
            [InlineKeyboardButton(text=words, callback_data=data) for words, data in row] for row in keyboard if row
        ]
    )


def cut(text: Html) -> Html:
    """Whole lines only: no tag of ours goes over the end of a line."""
    if len(text.encode("utf-16-le")) // 2 <= LONGEST_TEXT:
        return text
    kept, size = [], 2
    for line in text.split("\n"):
        size += len(line.encode("utf-16-le")) // 2 + 1
        if size > LONGEST_TEXT:
            break
        kept.append(line)
    return Html("\n".join([*kept, "…"]))
