"""The methods of the Bot API, by their names in lower case. Each checks everything before it changes anything."""

from telegram_sandbox.methods import chats, files, messages, profile, queries
from telegram_sandbox.methods.call import Call, Method, registry

__all__ = ["METHODS", "Call"]

_MODULES = (chats, files, messages, profile, queries)

METHODS: dict[str, tuple[str, Method]] = registry
