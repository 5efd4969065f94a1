"""Is this message a wake-up that this worker can use? Size, encoding, shape, version, actor: before any claim."""

from __future__ import annotations

import uuid
from typing import Any

from dramatiq.message import Message

from chronos.models.task import MESSAGE_VERSION, TaskQueueMessage


class Unknown(Exception):
    """A proper wake-up for another worker: an actor or a version that is not known here (rolling deploy)."""

    def __init__(self, task_id: uuid.UUID, why: str) -> None:
        super().__init__(why)
        self.task_id = task_id


def check(broker: Any, queue: str, body: bytes, most_bytes: int) -> tuple[Message[Any], uuid.UUID | None]:
    """The message and the task that it wakes; None for a housekeeping tick. Anything else about it is an exception."""
    if len(body) > most_bytes:
        raise ValueError(f"{len(body):,} bytes, at most {most_bytes:,} are a wake-up")
    message: Message[Any] = Message.decode(body)
    if not isinstance(message.kwargs, dict) or not isinstance(message.actor_name, str):
        raise ValueError("not of Dramatiq's shape")
    if message.queue_name != queue:
        raise ValueError(f"it names queue {message.queue_name!r}")
    actor = broker.actors.get(message.actor_name)
    if actor is not None and actor.options.get("periodic") is not None:
        return message, None
    version, task_id = message.kwargs.get("version"), message.kwargs.get("task_id")
    if isinstance(version, int) and version > MESSAGE_VERSION:
        raise Unknown(uuid.UUID(str(task_id)), f"message version {version} is newer than {MESSAGE_VERSION}")
    contract = TaskQueueMessage.model_validate(message.kwargs)
    if contract.task_name != message.actor_name:
        raise ValueError(f"it names both {contract.task_name!r} and {message.actor_name!r}")
    if actor is None:
        raise Unknown(contract.task_id, f"no actor {contract.task_name!r} in this worker")
    return message, contract.task_id
