"""Tables, statuses and contracts. No I/O in here."""

from chronos.models.activity import PrunedActivity
from chronos.models.base import Base
from chronos.models.moves import FINAL, MOVES, TaskStatus
from chronos.models.operations import DeadLetter, Leader, Limit, QueueState, Send, Worker
from chronos.models.task import Task, TaskEvent, TaskQueueMessage, TaskStateRecord

__all__ = [
    "FINAL",
    "MOVES",
    "Base",
    "DeadLetter",
    "Leader",
    "Limit",
    "PrunedActivity",
    "QueueState",
    "Send",
    "Task",
    "TaskEvent",
    "TaskQueueMessage",
    "TaskStateRecord",
    "TaskStatus",
    "Worker",
]
