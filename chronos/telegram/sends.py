"""A message of a task, at most once: slot, intent, call, result. Whatever cuts this short leaves a known state.

The slot comes before the intent: a process that dies while it waits for its turn leaves nothing in doubt.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from chronos.engine.tasks import Claimed
from chronos.errors import BadInput
from chronos.telegram import bots, methods
from chronos.telegram.budget import Passage
from chronos.telegram.reasons import later
from chronos.telegram.urgency import OF_QUEUE, Urgency, sending_as

if TYPE_CHECKING:
    from aiogram.methods import TelegramMethod

#: Seconds until a task of another bot is looked at again.
OTHER_BOT_SECONDS = 60.0

#: The slot of the call that is about to be made under an intent.
prepared: ContextVar[Passage | None] = ContextVar("prepared", default=None)


class Run(Protocol):
    """The part of an actor's context that a send needs."""

    @property
    def task(self) -> Claimed: ...

    def intent(self, key: str, *, chat: int | None = None) -> Any: ...


@dataclass(frozen=True)
class Sent:
    """A message as the ledger keeps it: the same from the run that sent it and from each later one."""

    chat: int | None = None
    message_id: int | None = None  #: None also when somebody said that it arrived
    message_ids: tuple[int, ...] = ()  #: of an album or of several copies
    file_id: str | None = None  #: to send the same file again without uploading it
    doubtful: bool = False  #: it may have arrived, and nobody has decided yet


async def send(run: Run, key: str, method: TelegramMethod[Any], *, urgency: Urgency | None = None) -> Sent:
    """Send it, unless an earlier run of the task did: then what that one sent comes back.

    Raises Later (not sent, no attempt used), PermanentError (it will never work) or Ambiguous (it may have arrived).
    """
    if not methods.makes(method.__api_method__):
        raise BadInput(f"{method.__api_method__} makes nothing new: ctx.call() it, it may simply be repeated")
    bot, sender = await asyncio.to_thread(bots.this_bot)
    task = run.task
    if task.bot_id is not None and task.bot_id != bot.id:
        raise later("other bot", OTHER_BOT_SECONDS)
    how = urgency or OF_QUEUE[task.queue]
    with sending_as(how):
        passage = await sender.admit(method)
        chat = passage.chat if isinstance(passage.chat, int) else None
        async with run.intent(key, chat=chat) as effect:
            if effect.needed:
                before = prepared.set(passage)
                try:
                    sent = _sent(await bot(method))
                finally:
                    prepared.reset(before)
                effect.message_id, effect.result = sent.message_id, asdict(sent)
                return sent
    facts = dict(effect.result or {})
    facts["message_ids"] = tuple(facts.get("message_ids", ()))
    return Sent(**{**facts, "doubtful": effect.doubtful})


def _sent(result: Any) -> Sent:
    messages = result if isinstance(result, list) else [result]
    first = messages[0] if messages else None
    chat = getattr(first, "chat", None)
    ids = tuple(message.message_id for message in messages if hasattr(message, "message_id"))
    return Sent(
        chat=None if chat is None else chat.id,
        message_id=ids[0] if ids else None,
        message_ids=ids,
        file_id=_file_id(first),
    )


def _file_id(message: Any) -> str | None:
    for kind in ("photo", "document", "video", "animation", "audio", "voice", "video_note", "sticker"):
        media = getattr(message, kind, None)
        if media:
            return str((media[-1] if isinstance(media, list) else media).file_id)
    return None
