"""Everything that leaves for Telegram: `bot()` for coroutines, `ctx.send` and `ctx.call` for actors.

Importing this package does not import aiogram.
"""

from chronos.telegram.bots import bot, call, close, is_made, on_the_loop, run, run_soon, this_bot
from chronos.telegram.sends import Sent, send
from chronos.telegram.urgency import (
    BROADCAST,
    DELIVERY,
    NOTICE,
    OF_QUEUE,
    POST,
    PROGRESS,
    REMINDER,
    REPLY,
    Urgency,
    sending_as,
)

__all__ = [
    "BROADCAST",
    "DELIVERY",
    "NOTICE",
    "OF_QUEUE",
    "POST",
    "PROGRESS",
    "REMINDER",
    "REPLY",
    "Sent",
    "Urgency",
    "bot",
    "call",
    "close",
    "is_made",
    "on_the_loop",
    "run",
    "run_soon",
    "send",
    "sending_as",
    "this_bot",
]
