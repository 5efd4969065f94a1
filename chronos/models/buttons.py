"""The buttons of a task's card: what Telegram carries back when one is pressed, at most 64 bytes of it."""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
from dataclasses import dataclass
from enum import StrEnum


class Press(StrEnum):
    CANCEL = "cancel"
    RETRY = "retry"
    AGAIN = "again"  #: send this one message again
    ARRIVED = "arrived"  #: it was seen that this one message arrived
    PDF = "pdf"  #: of a finished report


_DATA = re.compile(rf"({'|'.join(Press)}):([A-Za-z0-9_-]{{22}})(?::([A-Za-z0-9_-]{{8}}))?")


@dataclass(frozen=True)
class Button:
    press: Press
    task_id: uuid.UUID
    mark: str = ""  #: of one effect's key; empty: the whole task

    def __str__(self) -> str:
        id_ = base64.urlsafe_b64encode(self.task_id.bytes).rstrip(b"=").decode()
        return f"{self.press}:{id_}" + (f":{self.mark}" if self.mark else "")

    @classmethod
    def parse(cls, data: str) -> Button | None:
        """None: it is no button of a card."""
        found = _DATA.fullmatch(data)
        if found is None:
            return None
        return cls(Press(found[1]), uuid.UUID(bytes=base64.urlsafe_b64decode(found[2] + "==")), found[3] or "")


def mark_of(key: str) -> str:
    """A key may be as long as its actor likes; its mark has 8 characters."""
    return base64.urlsafe_b64encode(hashlib.sha256(key.encode()).digest()[:6]).decode()
