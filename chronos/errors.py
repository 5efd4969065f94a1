"""Every error that crosses a module boundary; the class tells the caller what to do next."""

from __future__ import annotations

import math
from typing import Any

from chronos.redaction import without_secrets

#: Seconds; a task that is to wait for longer than a year is a mistake.
LONGEST_LATER = 366 * 86400.0


class ChronosError(Exception):
    """Something that a person can act on; str() is one clear line."""


class BadInput(ChronosError):
    """What was asked for cannot be done as it was asked; nothing was changed. The CLI exits with 2.

    `reason` with its `fields` is the same for a front door that speaks other languages: a key of its texts.
    """

    def __init__(self, words: str, reason: str = "", **fields: Any) -> None:
        super().__init__(words)
        self.reason, self.fields = reason, fields


class NotMigrated(ChronosError):
    """The database has not the schema of this code."""


class Unavailable(ChronosError):
    """PostgreSQL could not be reached before the deadline."""


class Outcome(Exception):
    """Base of what an actor may raise to say how its run ended."""

    #: A short key for texts, such as "blocked"; empty when there is none.
    reason: str = ""


class PermanentError(Outcome):
    """It will never work: the task fails at once, whatever attempts are left."""


class Later(Outcome):
    """Not now: pending again after so many seconds; no attempt is used."""

    def __init__(self, seconds: float = 0.0, why: str = "later") -> None:
        super().__init__(why)
        self.seconds = 0.0 if math.isnan(seconds) else min(max(0.0, seconds), LONGEST_LATER)
        self.why = one_line(why)


class Ambiguous(Outcome):
    """An outside effect may or may not have happened: the task ends as unknown and a person decides."""


class Cancelled(Outcome):
    """The actor saw that its task was to be cancelled and stopped."""


class Expired(Outcome):
    """The task's expires_at passed before its next effect."""


class NotSent(Exception):
    """Raised inside `ctx.intent()`: the effect surely did not happen, so an ordinary retry is safe."""


class ClaimLost(BaseException):
    """This run no longer owns its task. A BaseException, so that no `except Exception` of an actor goes on."""


class HandBack(BaseException):
    """This run gives its task back unfinished (shutdown); the attempt is given back too."""


def one_line(error: BaseException | str, limit: int = 500) -> str:
    """The text of an error as one line that PostgreSQL's text type can hold."""
    try:
        text = error if isinstance(error, str) else (str(error) or type(error).__name__)
    except Exception:  # an exception of somebody else's, whose own __str__ fails
        text = type(error).__name__
    return " ".join(storable(text).split())[:limit]


def storable(text: str) -> str:
    """The same text with what PostgreSQL cannot hold (NUL, half a surrogate pair) written out, and without secrets."""
    return without_secrets(text).replace("\x00", "\\0").encode("utf-8", "backslashreplace").decode()


def jsonable_error(error: BaseException) -> dict[str, Any]:
    return {"class": type(error).__name__, "message": one_line(error)}
