"""What the sender must know of a method, told by its name: does a repeat make a second message, what does it count."""

from __future__ import annotations

from typing import Any

from chronos.telegram.budget import Counts

#: Calls with these beginnings make something new each time they are made.
_MAKERS = ("send", "copy", "forward", "post", "repost", "create", "gift", "transfer", "convert", "upgrade", "refund")
#: And these begin so without making anything.
_MAKE_NOTHING = frozenset({"sendChatAction", "sendMessageDraft", "sendRichMessageDraft"})
#: They change a message that is there.
_EDITS = ("edit", "stopPoll", "stopMessageLiveLocation", "setGameScore")
#: Receiving and saying who we are wait for no budget and no hold: a bot whose token was mended must be able to say so,
#: and updates must be fetched while PostgreSQL is away.
_FREE = frozenset({"getUpdates", "getMe", "deleteWebhook", "getWebhookInfo"})


def makes(name: str) -> bool:
    """Whether a call that is repeated is made twice."""
    return name.startswith(_MAKERS) and name not in _MAKE_NOTHING


def counts(name: str) -> Counts:
    if name.startswith(("send", "copy", "forward")) and name not in _MAKE_NOTHING:
        return "send"
    return "edit" if name.startswith(_EDITS) else "nothing"


def is_free(name: str) -> bool:
    return name in _FREE


def size(method: Any) -> int:
    """Messages that one call makes: an album or a list of copies has several."""
    for field in ("media", "message_ids"):
        several = getattr(method, field, None)
        if isinstance(several, list):
            return max(1, len(several))
    return 1


def can_be_paid(method: Any) -> bool:
    return "allow_paid_broadcast" in type(method).model_fields
