"""How wake-ups travel, whatever carries them: RabbitMQ (rabbitmq.py) or the memory of one process (memory.py)."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Protocol

from chronos.models.task import MESSAGE_VERSION

#: id, name and user of a task
Wakeup = tuple[uuid.UUID, str, int | None]
#: delivery tag and body
Delivery = tuple[int, bytes]


class Publisher(Protocol):
    """The sending end. One thread at a time, or several: each call is whole."""

    shared: bool  #: False: it reaches this process alone, so nobody leads

    def ready_count(self, queue: str) -> int: ...
    def publish(self, queue: str, wakeups: list[Wakeup]) -> None: ...
    def send(self, queue: str, body: bytes) -> None: ...
    def close(self) -> None: ...


class Inbox(Protocol):
    """The receiving end of one queue, for one thread; `bury` may be called by any."""

    def fetch(self, timeout: float) -> list[Delivery]: ...
    def pump(self) -> list[Delivery]: ...
    def ack(self, tag: int, *, multiple: bool = False) -> None: ...
    def reject(self, tag: int) -> None: ...
    def give_back(self, tags: list[int]) -> None: ...
    def set_prefetch(self, count: int) -> None: ...
    def park(self) -> None: ...
    def bury(self, record: bytes) -> None: ...
    def close(self) -> None: ...


class Transport(Protocol):
    def publisher(self) -> Publisher: ...
    def inbox(self, queue: str) -> Inbox: ...
    def dead_messages(self, queue: str, most: int) -> AbstractContextManager[list[bytes]]:
        """Dead messages of a queue; they are gone when the block ends well, and still there when it does not."""
        ...


class InboxLost(Exception):
    """The connection broke: every delivery that was not acked belongs to the broker again."""


def encode(queue: str, wakeup: Wakeup) -> bytes:
    """Dramatiq's own message format, so that every Dramatiq tool can read our queues."""
    id_, name, user = wakeup
    head, tail = _envelope(queue, name)
    return (
        f'{head}"task_id":"{id_}","user_id":{"null" if user is None else user}{tail}"message_id":"{id_}",'
        f'"message_timestamp":{int(time.time() * 1000)}}}'
    ).encode()


@lru_cache(maxsize=1024)
def _envelope(queue: str, name: str) -> tuple[str, str]:
    """What all wake-ups of one actor share; the relay writes thousands of them per second."""
    queue_, name_ = json.dumps(queue), json.dumps(name)
    return (
        f'{{"queue_name":{queue_},"actor_name":{name_},"args":[],"kwargs":{{"version":{MESSAGE_VERSION},',
        f',"task_name":{name_}}},"options":{{}},',
    )
