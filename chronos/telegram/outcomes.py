"""What Telegram answered -> what to do next: a table. Knows answers, not aiogram; sender.py reads aiogram's errors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

#: Seconds to wait after a 429 that does not say for how long.
DEFAULT_RETRY_AFTER = 5.0


class Move(Enum):
    """What the sender does next."""

    WAIT = auto()  #: a 429: everyone in its scope waits
    REFUSE = auto()  #: it will never work
    UNREACHABLE = auto()  #: it will never work, and the subscriber is marked
    MOVE = auto()  #: the chat has another id: rewrite it, send once to that
    DONE = auto()  #: what was wanted is so already
    TOO_LATE = auto()  #: nobody waits for it any more; nothing to repeat
    GONE = auto()  #: the message to change is gone: a known end
    STOP = auto()  #: 401: this bot stops, its tasks stay pending
    CONFLICT = auto()  #: 409: another process polls
    UNSURE = auto()  #: it may have happened: ambiguous if it creates a message, else tried again
    UNSENT = auto()  #: surely not sent: tried again


@dataclass(frozen=True)
class Answer:
    """What came back for one call."""

    status: int | None = None  #: HTTP's; None: there was no answer
    description: str = ""  #: Telegram's words
    retry_after: float | None = None
    migrate_to: int | None = None
    reached: bool = True  #: without an answer: whether the request may have reached Telegram


@dataclass(frozen=True)
class Rule:
    low: int
    high: int
    words: str  #: in the description, in small letters; empty: any
    move: Move
    reason: str


def _at(status: int, move: Move, *rows: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple(Rule(status, status, words, move, reason) for words, reason in rows)


#: The first rule that fits decides.
RULES: tuple[Rule, ...] = (
    *_at(429, Move.WAIT, ("", "busy")),
    *_at(400, Move.DONE, ("message is not modified", ""), ("message to delete not found", "")),
    *_at(400, Move.TOO_LATE, ("query is too old", ""), ("query id is invalid", "")),
    *_at(400, Move.MOVE, ("group chat was upgraded to a supergroup", "moved")),
    *_at(
        400,
        Move.GONE,
        ("message to edit not found", "message gone"),
        ("message can't be edited", "message gone"),
        ("message can't be deleted", "message gone"),
        ("message identifier is not specified", "message gone"),
        ("message_id_invalid", "message gone"),
    ),
    *_at(
        400,
        Move.REFUSE,
        ("chat not found", "chat not found"),
        ("peer_id_invalid", "chat not found"),
        ("message is too long", "too long"),
        ("caption is too long", "caption too long"),
        ("text is empty", "empty"),
        ("text must be non-empty", "empty"),
        ("can't parse entities", "bad formatting"),
        ("button_", "bad button"),
        ("inline keyboard", "bad button"),
        ("failed to get http url content", "bad link"),
        ("wrong file identifier", "bad file"),
        ("wrong remote file", "bad file"),
        ("file is too big", "file too big"),
        ("not enough rights", "no rights"),
        ("need administrator rights", "no rights"),
        ("chat_write_forbidden", "no rights"),
        ("", "refused"),
    ),
    *_at(401, Move.STOP, ("", "stopped")),
    *_at(
        403,
        Move.UNREACHABLE,
        ("blocked by the user", "blocked"),
        ("user is deactivated", "deactivated"),
        ("can't initiate conversation", "not started"),
        ("bot was kicked", "kicked"),
        ("not a member", "not a member"),
    ),
    *_at(403, Move.REFUSE, ("", "no rights")),
    *_at(404, Move.REFUSE, ("", "unknown method")),
    *_at(409, Move.CONFLICT, ("", "")),
    *_at(413, Move.REFUSE, ("", "file too big")),
    Rule(300, 399, "", Move.REFUSE, "redirected"),
    Rule(400, 499, "", Move.REFUSE, "refused"),
    # 2xx: the message was made, or what it was is unreadable; 5xx: a proxy's word says nothing of what is behind it.
    Rule(0, 999, "", Move.UNSURE, "unsure"),
)


def rule_for(answer: Answer) -> Rule:
    if answer.migrate_to is not None:
        return Rule(400, 400, "", Move.MOVE, "moved")
    if answer.status is None:
        return Rule(
            0, 0, "", Move.UNSURE if answer.reached else Move.UNSENT, "unsure" if answer.reached else "unreachable"
        )
    words = answer.description.lower()
    return next(rule for rule in RULES if rule.low <= answer.status <= rule.high and rule.words in words)
