"""One call of one bot: what it asked, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from telegram_sandbox.chats import Chat, find_chat
from telegram_sandbox.errors import Json
from telegram_sandbox.events import Events
from telegram_sandbox.files import Files
from telegram_sandbox.messages import Messages
from telegram_sandbox.parameters import Parameters
from telegram_sandbox.world import World


@dataclass
class Call:
    world: World
    messages: Messages
    files: Files
    events: Events
    bot: Json
    parameters: Parameters
    #: Of messages that were created, changed or removed: it goes into the log.
    touched: list[int] = field(default_factory=list)
    #: Their text, for the log.
    text: str | None = None
    #: A message was created.
    stored: bool = False
    now: float = field(default_factory=time.time)

    def chat(self, name: str = "chat_id") -> Chat:
        return find_chat(self.world, self.bot["id"], self.parameters.values.get(name))


Method = Callable[[Call], Any]

#: By name in lower case: Telegram's spelling, and the function.
registry: dict[str, tuple[str, Method]] = {}


def method(name: str) -> Callable[[Method], Method]:
    def register(function: Method) -> Method:
        registry[name.lower()] = (name, function)
        return function

    return register
