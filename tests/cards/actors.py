"""Actors of the tests of cards: one that walks step by step, some that end badly, one that presses buttons."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

from aiogram.methods import SendMessage

from chronos import cards
from chronos.actor import actor
from chronos.errors import Cancelled, Expired, PermanentError
from chronos.middleware.context import Context
from chronos.models.params import Params


class Walk(Params):
    gate: str | None = None  #: it waits at 62 % until this file is there
    send: list[str] = []
    count: bool = False  #: how often it looked, instead of 62 %
    fail: str | None = None
    permanent: bool = False
    expire: bool = False


@actor(queue="post", params=Walk)
def walk(params: Walk, ctx: Context) -> dict[str, Any]:
    looks = 0
    while params.gate is not None and not Path(params.gate).exists():
        looks += 1
        ctx.progress(looks if params.count else 62, 1000 if params.count else 100, "считаю")
        if ctx.cancelled():
            raise Cancelled("stopped on request")
        threading.Event().wait(0.05)
    for text in params.send:
        assert ctx.task.chat is not None
        ctx.send(text, SendMessage(chat_id=ctx.task.chat, text=text))
    if params.expire:
        raise Expired("too late")
    if params.fail is not None:
        raise PermanentError(params.fail) if params.permanent else KeyError(params.fail)
    return {"walked": True}


@actor(queue="post", params=Walk)
async def stroll(params: Walk, ctx: Context) -> None:
    """The same as a coroutine, as far as its card goes."""
    while params.gate is not None and not os.path.exists(params.gate):  # noqa: ASYNC240
        ctx.progress(62, 100, "считаю")
        await asyncio.sleep(0.05)


class Pressed(Params):
    data: str
    bot: int
    chat: int
    message: int
    user: int
    admin: bool = False


@actor(queue="system", params=Pressed)
async def press(params: Pressed, ctx: Context) -> str:
    """What the bot does when somebody presses a button."""
    place = cards.Place(params.bot, params.chat, params.message)
    return await cards.press(params.data, place, params.user, "ru", is_admin=params.admin)
