"""What a card tells, read from the database in one look."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from sqlalchemy import Connection, text

from chronos.language import language_for
from chronos.models import TaskStateRecord
from chronos.runtime import Runtime
from chronos.task_facts import Facts, facts_about


@dataclass(frozen=True)
class CardFacts:
    task: TaskStateRecord
    doubts: list[str] = field(default_factory=list)  #: keys of the messages that may have arrived, the oldest first
    zone: str | None = None  #: of whoever asked for the task
    language: str = "en"  #: theirs, where no card says which
    around: Facts | None = None  #: of a task that waits: why


_TASK = text("""
select t.*, u.time_zone, u.language, u.language_code,
  array(select s.key from sends s where s.task_id = t.id and s.state = 'unknown' order by s.created_at, s.key) as doubts
from tasks t left join users u on u.id = coalesce(t.user_id, t.chat) where t.id = :id
""")


def facts_of(connection: Connection, runtime: Runtime, task_id: uuid.UUID) -> CardFacts | None:
    """None: there is no such task (any more)."""
    row = connection.execute(_TASK, {"id": task_id}).one_or_none()
    if row is None:
        return None
    task = TaskStateRecord.model_validate(dict(row._mapping))
    around = facts_about(connection, runtime, task) if task.status == "pending" else None
    doubts = row.doubts if task.status == "unknown" else []
    asked = None if row.language_code else task.params.get("language")
    language = language_for(row.language or asked, row.language_code)
    return CardFacts(task, doubts, row.time_zone, language, around)
