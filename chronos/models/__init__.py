"""Tables, statuses and contracts. No I/O in here."""

from chronos.models.activity import PrunedActivity
from chronos.models.base import Base
from chronos.models.bot import Bot, Update
from chronos.models.chat import Card, Chat, ChatKind, Subscriber
from chronos.models.moves import FINAL, MOVES, TaskStatus
from chronos.models.operations import Budget, DeadLetter, Leader, Limit, QueueState, Send, Worker
from chronos.models.task import Task, TaskEvent, TaskQueueMessage, TaskStateRecord
from chronos.models.user import LANGUAGES, Invitation, Role, User

__all__ = [
    "FINAL",
    "LANGUAGES",
    "MOVES",
    "Base",
    "Bot",
    "Budget",
    "Card",
    "Chat",
    "ChatKind",
    "DeadLetter",
    "Invitation",
    "Leader",
    "Limit",
    "PrunedActivity",
    "QueueState",
    "Role",
    "Send",
    "Subscriber",
    "Task",
    "TaskEvent",
    "TaskQueueMessage",
    "TaskStateRecord",
    "TaskStatus",
    "Update",
    "User",
    "Worker",
]
