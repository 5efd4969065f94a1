"""Dead letters: what failed for good, grouped by cause; show, retry or clear one, some or all of them.

Tools read PostgreSQL only. A record without a task is a message that never was one: it can be cleared, not retried.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from chronos.engine import tasks
from chronos.errors import BadInput, Unavailable, one_line
from chronos.housekeeping import purge_dead_messages
from chronos.logs import redacted
from chronos.queues import policy_of
from chronos.runtime import Runtime

BATCH = 500


@dataclass(frozen=True)
class Choice:
    """Which dead letters: one (by its id or its task's id, or the beginning of either), or all that match."""

    id: str | None = None
    queue: str | None = None
    cause: str | None = None
    everything: bool = False

    def values(self) -> dict[str, Any]:
        if self.queue is not None:
            policy_of(self.queue)
        for name, value in (("id", self.id), ("cause", self.cause)):
            if value is not None and not _is_hexadecimal(value):
                raise BadInput(f"{value!r} is no {name} of a dead letter: `chronos dlq list` shows them")
        return {
            "id": self.id and self.id.replace("-", "").lower() + "%",
            "queue": self.queue,
            "cause": self.cause and self.cause.lower() + "%",
        }

    def must_choose(self) -> None:
        if not (self.id or self.queue or self.cause or self.everything):
            raise BadInput("which ones? give an ID, --queue, --cause or --all")


def _is_hexadecimal(value: str) -> bool:
    digits = value.replace("-", "").lower()
    return 0 < len(digits) <= 32 and all(digit in "0123456789abcdef" for digit in digits)


_CHOSEN = """
 retried_at is null and (cast(:queue as text) is null or original_queue = :queue)
 and (cast(:cause as text) is null or fingerprint like :cause)
 and (cast(:id as text) is null or replace(id::text, '-', '') like :id or replace(task_id::text, '-', '') like :id)
"""


@dataclass(frozen=True)
class Cause:
    """Dead letters that failed alike."""

    cause: str  #: the beginning of the fingerprint, enough for `--cause`
    queue: str
    count: int
    reason: str
    error_class: str | None
    first: datetime
    last: datetime
    example: uuid.UUID  #: one of the records


_CAUSES = text(f"""
select left(fingerprint, 8) as cause, original_queue as queue, count(*)::int as count,
       (array_agg(failure_reason order by failed_at desc))[1] as reason,
       (array_agg(error_class order by failed_at desc))[1] as error_class,
       min(failed_at) as first, max(failed_at) as last,
       (array_agg(coalesce(task_id, id) order by failed_at desc))[1] as example
from dead_letters where {_CHOSEN} group by 1, 2 order by count(*) desc, max(failed_at) desc limit 100
""")


def causes(runtime: Runtime, queue: str | None = None) -> list[Cause]:
    """The most frequent first."""
    with runtime.database.statement() as connection:
        return [Cause(**row._mapping) for row in connection.execute(_CAUSES, Choice(queue=queue).values())]


_RECORDS = text(f"""
select id, original_queue as "originalQueue", original_job_id as "originalJobId",
       original_job_data as "originalJobData", failure_reason as "failureReason", attempts_made as "attemptsMade",
       failed_at as "failedAt", error_class as "errorClass", left(fingerprint, 8) as cause, traceback
from dead_letters where {_CHOSEN} order by failed_at desc limit :most
""")


def records(runtime: Runtime, choice: Choice, most: int = 20) -> list[dict[str, Any]]:
    """In full, the newest first, in the shape of the queue's jobs; secrets in the data are hidden."""
    with runtime.database.statement() as connection:
        rows = connection.execute(_RECORDS, {**choice.values(), "most": most})
        return [redacted(dict(row._mapping)) for row in rows]


@dataclass(frozen=True)
class Retried:
    retried: int
    not_tasks: int  #: records of messages that never were tasks: nothing to run


def retry(runtime: Runtime, choice: Choice, by: str) -> Retried:
    """Run them again, with all their attempts; batch by batch, so a crash leaves whole batches done."""
    choice.must_choose()
    with runtime.database.statement() as connection:
        rows = connection.execute(
            text(f"select task_id from dead_letters where {_CHOSEN} order by failed_at"), choice.values()
        ).scalars()
        found = list(rows)
    _only_one(choice, len(found))
    ids = [id_ for id_ in found if id_ is not None]
    revived = 0
    for start in range(0, len(ids), BATCH):
        with runtime.database.statement() as connection:
            revived += len(tasks.revive(connection, ids[start : start + BATCH], by))
    return Retried(revived, len(found) - len(ids))


def clear(runtime: Runtime, choice: Choice) -> int:
    """Forget them; with everything or a queue chosen also what lies in RabbitMQ's `.XQ`. How many records."""
    choice.must_choose()
    values = choice.values()
    with runtime.database.statement() as connection:
        if choice.id is not None:
            count = connection.execute(text(f"select count(*) from dead_letters where {_CHOSEN}"), values)
            _only_one(choice, count.scalar_one())
    if choice.id is None and choice.cause is None:
        # First: when RabbitMQ does not answer, nothing has been cleared.
        _purge(runtime, choice.queue)
    with runtime.database.statement() as connection:
        return _delete(connection, values)


def _delete(connection: Connection, values: dict[str, Any]) -> int:
    return connection.execute(text(f"delete from dead_letters where {_CHOSEN}"), values).rowcount


def _only_one(choice: Choice, found: int) -> None:
    if choice.id is None:
        return
    if found == 0:
        raise BadInput(f"there is no dead letter {choice.id}", "no_letter")
    if found > 1:
        raise BadInput(f"{found} dead letters begin with {choice.id}: give more of the id")


def _purge(runtime: Runtime, queue: str | None) -> None:
    try:
        purge_dead_messages(runtime, queue)
    except Exception as error:
        raise Unavailable(
            f"RabbitMQ does not answer, so nothing was cleared: {one_line(error) or type(error).__name__}"
        ) from error
