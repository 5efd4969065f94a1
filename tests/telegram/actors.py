"""Actors of tests that send: each message under its own key."""

from __future__ import annotations

from typing import Any

from aiogram.methods import EditMessageText, SendMessage

from chronos import telegram
from chronos.actor import actor
from chronos.errors import Ambiguous, PermanentError
from chronos.middleware.context import Context
from chronos.models.params import Params


class Shout(Params):
    chat: int
    texts: list[str]
    go_on: bool = False  #: after a message that may have arrived
    fail_first: bool = False  #: the first run fails after its messages
    edit: str | None = None


@actor(queue="post", params=Shout)
def shout(params: Shout, ctx: Context) -> dict[str, Any]:
    sent = []
    for text in params.texts:
        try:
            sent.append(ctx.send(text, SendMessage(chat_id=params.chat, text=text)))
        except Ambiguous:
            if not params.go_on or text == params.texts[-1]:
                raise
    if params.fail_first and ctx.task.attempt == 1:
        raise RuntimeError("the first run fails")
    if params.edit is not None:
        ctx.call(EditMessageText(chat_id=params.chat, message_id=sent[0].message_id, text=params.edit))
    return {"ids": [one.message_id for one in sent]}


@actor(queue="post", params=Shout)
async def whisper(params: Shout, ctx: Context) -> dict[str, Any]:
    sent = [await telegram.send(ctx, text, SendMessage(chat_id=params.chat, text=text)) for text in params.texts]
    return {"ids": [one.message_id for one in sent]}


@actor(queue="post", params=Shout)
async def download(params: Shout, ctx: Context) -> None:
    await telegram.bot().download_file("documents/none.pdf")


@actor(queue="post", params=Shout)
def leak(params: Shout, ctx: Context) -> None:
    """What a careless actor might do: the token in its log, in its progress, in its result's error."""
    token = telegram.bot().token
    ctx.log.warning("calling", url=f"https://api.telegram.org/bot{token}/getMe")
    ctx.progress(1, 1, note=f"as {token}")
    raise PermanentError(f"https://api.telegram.org/bot{token}/getMe does not answer")
