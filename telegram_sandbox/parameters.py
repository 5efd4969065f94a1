"""What a bot passed to a method, from whichever body it came, read as Telegram reads it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from telegram_sandbox.errors import bad_request
from telegram_sandbox.files import Upload


@dataclass
class Parameters:
    #: From JSON bodies also numbers, lists and objects; all else is text.
    values: dict[str, Any]
    uploads: dict[str, Upload] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        value = self.values.get(name)
        if value is None:
            return default
        return value if isinstance(value, str) else json.dumps(value)

    def integer(self, name: str, default: int = 0) -> int:
        value = self.values.get(name)
        if isinstance(value, bool) or value is None:
            return default
        try:
            return int(value)
        except (TypeError, ValueError, OverflowError):
            return default

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        return value is True or (isinstance(value, str) and value.lower() in ("true", "yes", "1")) or value == 1

    def json(self, name: str, words: str | None = None) -> Any:
        """None: not given. words: what Telegram says when it is no JSON."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except ValueError:
            raise bad_request(words or f"can't parse {name} JSON object") from None
