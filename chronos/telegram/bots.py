"""The bot of this process, made when it is first needed: importing aiogram takes seconds and 170 MB.

The sender lives on the one event loop of the process; a synchronous actor reaches it through `call`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from dramatiq.asyncio import get_event_loop_thread

from chronos.db import Database
from chronos.errors import BadInput
from chronos.runtime import runtime
from chronos.telegram.urgency import Urgency, current, sending_as

if TYPE_CHECKING:
    from aiogram import Bot
    from aiogram.methods import TelegramMethod

    from chronos.telegram.sender import Sender

T = TypeVar("T")

_making = threading.Lock()
_made: tuple[Bot, Sender] | None = None


def this_bot() -> tuple[Bot, Sender]:
    """The first call takes seconds: from a coroutine, make it in a thread."""
    global _made
    with _making:
        if _made is None:
            here = runtime()
            if here.settings.bot_token is None:
                raise BadInput("CHRONOS_BOT_TOKEN is not set: @BotFather gives one, and `chronos up` works without")
            from chronos.telegram.sender import make_bot

            _made = make_bot(
                here.settings.bot_token.get_secret_value(),
                here.database,
                Database(here.database.url.render_as_string(hide_password=False), here.settings, connections=1),
                telegram_url=here.settings.telegram_url,
                paid=here.settings.paid_broadcast,
            )
        return _made


def bot() -> Bot:
    return this_bot()[0]


def call(method: TelegramMethod[T], *, urgency: Urgency | None = None) -> T:
    """From a synchronous actor: make a call that may be repeated (an edit, a delete, a read), and wait."""

    async def make() -> T:
        with sending_as(urgency or current()):
            return await made(method)

    made = bot()
    return run(make())


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it on the event loop of this worker process and wait for it, from any other thread."""
    thread = get_event_loop_thread()
    if thread is None or thread is threading.current_thread():
        coroutine.close()
        raise BadInput(
            "this belongs into a synchronous actor: "
            + ("no worker runs in this process" if thread is None else "a coroutine awaits chronos.telegram.send(...)")
        )
    return thread.run_coroutine(coroutine)


def run_soon(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Begin it on the event loop of this worker process; nobody waits for it, so its errors are its own to handle."""
    thread = get_event_loop_thread()
    if thread is None or not thread.loop.is_running():
        coroutine.close()
        return
    asyncio.run_coroutine_threadsafe(coroutine, thread.loop)


def on_the_loop() -> bool:
    """Whether the caller is a coroutine of an actor."""
    return get_event_loop_thread() is threading.current_thread()


def is_made() -> bool:
    return _made is not None


async def close() -> None:
    """Close the connections to Telegram, on the loop that used them."""
    global _made
    if _made is not None:
        made, _made = _made, None
        await made[0].session.close()
        await made[1].close()
