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
_NEWEST = text("""
select t.id, t.queue, t.task_name, t.status, t.attempt, t.max_attempts, t.created_at, t.run_at, t.started_at,
       t.finished_at, t.progress, t.error_message, t.params, clock_timestamp() as at,
       (select n.id from tasks n where n.id < t.id order by n.id desc limit 1) as before,
       (select n.id from tasks n where n.id > t.id order by n.id limit 1) as after
from (select * from tasks where (cast(:status as text) is null or status = :status)
      and (cast(:queue as text) is null or queue = :queue) and (cast(:name as text) is null or task_name = :name)
      and (:routine or queue <> 'system' or not task_name = any(cast(:hidden as text[]))
           or status in ('failed', 'unknown'))
      and (cast(:user as bigint) is null or user_id = :user) and (not :asked_for or queue <> 'system')
      and (cast(:older_than as uuid) is null or id < :older_than)
      and (not :alive or status in ('pending', 'in_progress'))
      order by id desc limit :most) t
order by t.id desc
""")


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
    with runtime.database.statement() as connection:
        rows = connection.execute(
            _NEWEST,
            {
                "status": status, "queue": queue, "name": name, "most": most, "user": user_id, "asked_for": asked_for,
                "alive": alive, "older_than": older_than, "routine": queue is not None or name is not None,
                "hidden": list(ROUTINE),
            },
        ).all()  # fmt: skip
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
