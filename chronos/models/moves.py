"""Task statuses and the allowed moves between them, each with its reason. docs/lifecycle.md says the same."""

from __future__ import annotations

from enum import StrEnum


class TaskStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


FINAL = frozenset(
    {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.UNKNOWN, TaskStatus.CANCELLED, TaskStatus.EXPIRED}
)

_P, _R = TaskStatus.PENDING, TaskStatus.IN_PROGRESS

#: (from, to) -> the verbs of engine/tasks.py that make the move, and why.
MOVES: dict[tuple[TaskStatus, TaskStatus], dict[str, str]] = {
    (_P, _R): {"claim": "a living worker takes it; the attempt is counted"},
    (_P, TaskStatus.CANCELLED): {"cancel": "somebody asked before it started"},
    (_P, TaskStatus.EXPIRED): {"expire": "its expires_at passed before it could start"},
    (_P, TaskStatus.FAILED): {"refuse": "no worker has known its actor or version for ten minutes"},
    (_R, TaskStatus.COMPLETED): {"finish": "the actor returned"},
    (_R, _P): {
        "retry": "the actor failed and attempts are left: backoff",
        "later": "the actor asked for another time; no attempt used",
        "hand_back": "it had not started or its worker stops; no attempt used",
        "reap": "its worker is dead and attempts are left",
    },
    (_R, TaskStatus.FAILED): {
        "fail": "a permanent error, or the last attempt failed",
        "reap": "its worker is dead and that was the last attempt",
    },
    (_R, TaskStatus.UNKNOWN): {
        "doubt": "an outside effect may have happened",
        "reap": "its worker died between an intent and its result",
    },
    (_R, TaskStatus.CANCELLED): {
        "end_cancelled": "the actor saw the request and stopped, or failed after it",
        "retry": "the actor failed, and a cancel had been asked for",
        "later": "the actor asked for another time, and a cancel had been asked for",
        "hand_back": "its worker stops, and a cancel had been asked for",
        "reap": "its worker is dead and a cancel had been asked for",
    },
    (_R, TaskStatus.EXPIRED): {"end_expired": "its expires_at passed before its next effect"},
    (TaskStatus.FAILED, _P): {"revive": "somebody retries the dead letter"},
    (TaskStatus.UNKNOWN, _P): {
        "revive": "somebody decides to make all its unknown effects again",
        "send_again": "somebody decides to make one unknown effect again",
        "go_on": "somebody saw that its last unknown effect arrived: the run goes on behind it",
    },
    (TaskStatus.UNKNOWN, TaskStatus.COMPLETED): {"mark_arrived": "somebody saw that it arrived"},
}
