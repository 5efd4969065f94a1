"""Who goes first when the bot's budget is short, as data: what somebody waits for before what nobody misses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Urgency:
    name: str
    #: Seconds; how far ahead of the clock it may reserve a slot. Whoever may look further ahead is served first:
    #: a flood of broadcasts can delay a reply by no more than the broadcasts' own tolerance.
    tolerance: float
    #: Seconds; how long a call waits for a slot before it is told to come later.
    patience: float


REPLY = Urgency("reply", tolerance=1.0, patience=30.0)
POST = Urgency("post", tolerance=0.7, patience=5.0)
REMINDER = Urgency("reminder", tolerance=0.45, patience=5.0)
NOTICE = Urgency("notice", tolerance=0.25, patience=5.0)  # reports too
PROGRESS = Urgency("progress", tolerance=0.15, patience=0.5)  # nobody misses one that is left out
DELIVERY = Urgency("delivery", tolerance=0.12, patience=5.0)
BROADCAST = Urgency("broadcast", tolerance=0.05, patience=2.0)

#: In the order in which they are served.
URGENCIES = (REPLY, POST, REMINDER, NOTICE, PROGRESS, DELIVERY, BROADCAST)

#: What the tasks of a queue send, unless they say otherwise.
OF_QUEUE = {
    "post": POST,
    "schedule": REMINDER,
    "report": NOTICE,
    "system": NOTICE,
    "delivery": DELIVERY,
    "broadcast": BROADCAST,
}

_current: ContextVar[Urgency] = ContextVar("urgency", default=REPLY)


def current() -> Urgency:
    return _current.get()


@contextmanager
def sending_as(urgency: Urgency) -> Iterator[None]:
    """Every call inside, also of tasks that are begun in it, has this urgency. Without it a call is a reply."""
    before = _current.set(urgency)
    try:
        yield
    finally:
        _current.reset(before)
