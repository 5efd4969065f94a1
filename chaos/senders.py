"""What the workers of the check `sends` do: one message per task, through the product's own way to Telegram.

Apart from chaos.actors, because importing aiogram takes seconds that the other checks need not wait for.
"""

from __future__ import annotations

import os

from aiogram.methods import SendMessage

from chronos.actor import actor
from chronos.middleware.context import Context
from chronos.models.params import Params


class Tell(Params):
    key: str
    chat: int


@actor(queue=os.environ["CHAOS_QUEUE"], params=Tell)
def say_to_one(params: Tell, ctx: Context) -> None:
    ctx.send("message", SendMessage(chat_id=params.chat, text=params.key))
