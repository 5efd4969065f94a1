"""Lists of tasks, the newest first, with ids that are short and still name exactly one task."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from chronos.errors import BadInput
from chronos.logs import redacted
from chronos.models import TaskStatus
from chronos.models.task import ROUTINE, SHORTEST_ID
from chronos.queues import policy_of
from chronos.runtime import Runtime


@dataclass(frozen=True)
class TaskLine:
    id: uuid.UUID
    short_id: str  #: works in every command
    queue: str
    task_name: str
    status: str
    attempt: int
    max_attempts: int
    created_at: datetime
    run_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    progress: dict[str, Any] | None
    error_message: str | None
    params: dict[str, Any]  #: secrets in them are hidden
    at: datetime  #: the database's time of this look


# The neighbours in the order of ids decide how much of an id is needed.
_NEWEST = """
select t.id, t.queue, t.task_name, t.status, t.attempt, t.max_attempts, t.created_at, t.run_at, t.started_at,
       t.finished_at, t.progress, t.error_message, t.params, clock_timestamp() as at,
       (select n.id from tasks n where n.id < t.id order by n.id desc limit 1) as before,
       (select n.id from tasks n where n.id > t.id order by n.id limit 1) as after
from (select * from tasks where {conditions} order by id desc limit :most) t
order by t.id desc
"""
_ROUTINE = "(queue <> 'system' or not task_name = any(cast(:hidden as text[])) or status in ('failed', 'unknown'))"


def newest(
    runtime: Runtime,
    *,
    status: str | None = None,
    queue: str | None = None,
    name: str | None = None,
    user_id: int | None = None,
    asked_for: bool = False,
    alive: bool = False,
    older_than: uuid.UUID | None = None,
    most: int = 20,
) -> list[TaskLine]:
    """Housekeeping, notices and alarms only when their queue or name is asked for, or when they failed.

    asked_for: without any that Chronos gives itself; alive: only what waits or runs.
    """
    if status is not None and status not in set(TaskStatus):
        raise BadInput(f"unknown status {status!r}: choose one of {', '.join(TaskStatus)}")
    if queue is not None:
        policy_of(queue)
    # Only what is asked for: a plan that must fit every wish would read the whole table for one user's tasks.
    conditions = {
        "status = :status": status is not None,
        "queue = :queue": queue is not None,
        "task_name = :name": name is not None,
        "user_id = :user": user_id is not None,
        "id < :older_than": older_than is not None,
        "queue <> 'system'": asked_for,
        "status in ('pending', 'in_progress')": alive,
        _ROUTINE: queue is None and name is None,
    }
    chosen = " and ".join(condition for condition, wanted in conditions.items() if wanted) or "true"
    wishes: dict[str, Any] = {"status": status, "queue": queue, "name": name, "user": user_id, "older_than": older_than}
    wishes["hidden"] = list(ROUTINE)
    wishes = {key: value for key, value in wishes.items() if f":{key}" in chosen}
    with runtime.database.statement() as connection:
        rows = connection.execute(text(_NEWEST.format(conditions=chosen)), {**wishes, "most": most}).all()
    lines = []
    for row in rows:
        facts = dict(row._mapping)
        before, after = facts.pop("before"), facts.pop("after")
        facts["params"] = redacted(facts["params"])
        lines.append(TaskLine(short_id=shortened(row.id, before, after), **facts))
    return lines


def shortened(id_: uuid.UUID, *neighbours: uuid.UUID | None) -> str:
    """The beginning of the id that none of its neighbours shares."""
    whole = str(id_)
    length = SHORTEST_ID
    for neighbour in neighbours:
        if neighbour is not None:
            shared = next(i for i, (a, b) in enumerate(zip(whole, str(neighbour), strict=True)) if a != b)
            length = max(length, shared + 1)
    return whole[:length].rstrip("-")
