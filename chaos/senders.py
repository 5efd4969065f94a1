"""What the workers of the check `sends` do: one message per task, through the product's own way to Telegram.

Apart from chaos.actors, because importing aiogram takes seconds that the other checks need not wait for.
"""

from __future__ import annotations

import os
import time
from typing import Any

from aiogram.methods import SendMessage
from aiohttp import ClientSession

from chronos.actor import actor
from chronos.middleware.context import Context
from chronos.models.params import Params


class Tell(Params):
    key: str
    chat: int


@actor(queue=os.environ["CHAOS_QUEUE"], params=Tell)
def say_to_one(params: Tell, ctx: Context) -> None:
    ctx.send("message", SendMessage(chat_id=params.chat, text=params.key))


def _stamp(session: ClientSession, url: str, *, data: Any, **options: Any) -> Any:
    """The moment at which the product lets a call out: the judge must not blame it for a network or a busy server."""
    left = time.time()
    text = next((value for about, _, value in data._fields if about["name"] == "text"), "")
    os.write(_stamps, f"{left:.6f} {text}\n".encode())
    return _post(session, url, data=data, **options)


_stamps = os.open(os.environ["CHAOS_STAMPS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
_post = ClientSession.post
ClientSession.post = _stamp  # type: ignore[method-assign]
