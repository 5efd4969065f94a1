"""What is done once a minute or more slowly: retention, the sweep of `.XQ`, statistics. Batched and bounded."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable
from typing import Any

from dramatiq.message import Message
from sqlalchemy import Connection, text

from chronos.models.period import LONGEST_DAYS
from chronos.queues import POLICIES
from chronos.reports.counting import KEEP_COUNTS
from chronos.runtime import Runtime

BATCH, MOST_BATCHES = 5000, 100

_PRUNE = text(f"""
with old as materialized (
  select id from tasks t where id > :after and id < :before
    and (status = any(cast(:statuses as text[])) or :cleared and status = 'failed'
         and not exists (select from dead_letters d where d.task_id = t.id))
    and finished_at < clock_timestamp() - :days * interval '1 day' order by id limit :rows for update skip locked
), events as (delete from task_events e using old where e.task_id = old.id
), ledger as (delete from sends s using old where s.task_id = old.id returning s.created_at, s.state, s.key
), shown as (delete from cards c using old where c.task_id = old.id
), letters as (delete from dead_letters d using old where d.task_id = old.id
), gone as (delete from tasks t using old where t.id = old.id
  returning t.queue, t.task_name, t.status, t.phase, t.started_at, t.finished_at, t.error_class, t.error_message
), counts as ({KEEP_COUNTS})
select id from old order by id desc limit 1
""")


#: Telegram gives an unconfirmed update for a day; a budget that nobody used for an hour is as good as none; the longest
#: report is compared with as many days before it.
_PRUNE_THE_REST = (
    "delete from workers where dead and beat_at < clock_timestamp() - interval '7 days'",
    "delete from updates where handled_at < clock_timestamp() - interval '2 days'",
    "delete from updates where put_aside_at < clock_timestamp() - interval '30 days'",
    "delete from budgets where key like 'chat:%' and tat < clock_timestamp() - interval '1 hour'"
    " and coalesce(held_until, '-infinity') < clock_timestamp()",
    "delete from invitations where coalesce(used_at, created_at) < clock_timestamp() - interval '7 days'",
    f"delete from pruned_activity where slot < clock_timestamp() - interval '{LONGEST_DAYS * 2} days'",
)


def prune(runtime: Runtime) -> dict[str, int]:
    """Delete what is older than the settings keep. Ids are in the order of creation, so no index is needed.

    The statement that deletes rows adds what they counted for: reports lose nothing and count nothing twice.
    """
    settings = runtime.settings
    batches = 0
    for statuses, days in (
        (["completed", "cancelled", "expired"], settings.keep_completed_days),
        (["failed", "unknown"], settings.keep_failed_days),
    ):
        if days == 0 and statuses[0] == "failed":
            continue
        before = uuid.UUID(int=(int((time.time() - days * 86400) * 1000) << 80) | (1 << 80) - 1)
        after: uuid.UUID | None = uuid.UUID(int=0)
        while after is not None and batches < MOST_BATCHES:
            with runtime.database.statement() as connection:
                after = connection.execute(
                    _PRUNE,
                    {
                        "after": after,
                        "before": before,
                        "statuses": statuses,
                        # A failed task whose dead letter somebody cleared is as done as a completed one.
                        "cleared": statuses[0] == "completed",
                        "days": days,
                        "rows": BATCH,
                    },
                ).scalar()
            batches += 1
    with runtime.database.statement() as connection:
        for statement in _PRUNE_THE_REST:
            connection.execute(text(statement))
    return {"batches": batches}


_LETTER = text("""
insert into dead_letters (id, original_queue, original_job_id, original_job_data, failure_reason, attempts_made,
                          error_class, fingerprint)
values (:id, :queue, :job, cast(:data as jsonb), :reason, 0, 'BadMessage', :fingerprint) on conflict do nothing
""")


def sweep_dead_messages(runtime: Runtime, most: int = 1000) -> dict[str, int]:
    """Empty `.XQ`: a message that has a row is dropped (the row tells more), one that has none becomes a record."""
    kept = dropped = 0
    for queue in POLICIES:
        with (
            runtime.transport.dead_messages(queue, most) as bodies,
            runtime.database.transaction() as connection,
        ):
            for body in bodies:
                if _record(connection, queue, body, runtime.settings.max_message_bytes):
                    kept += 1
                else:
                    dropped += 1
    return {"recorded": kept, "dropped": dropped}


def _record(connection: Connection, queue: str, body: bytes, most_bytes: int) -> bool:
    """False: the message has a row, which tells more than the message could."""
    task_id, reason = _read(body, most_bytes)
    if task_id is not None:
        known = connection.execute(text("select 1 from tasks where id = :id"), {"id": task_id}).scalar()
        if known:
            return False
    shown = body[:4096].decode("utf-8", "replace").replace("\x00", "\\0")
    connection.execute(
        _LETTER,
        {
            # The body's hash: a sweep that is repeated after a crash makes no second record.
            "id": uuid.UUID(bytes=hashlib.sha256(queue.encode() + body).digest()[:16]),
            "queue": queue,
            "job": str(task_id) if task_id else hashlib.sha256(body).hexdigest()[:16],
            "data": json.dumps({"message": shown, "bytes": len(body)}),
            "reason": reason,
            "fingerprint": hashlib.sha256(f"{queue} {reason}".encode()).hexdigest()[:32],
        },
    )
    return True


def _read(body: bytes, most_bytes: int) -> tuple[uuid.UUID | None, str]:
    """The task that a dead message names, and what is wrong with it."""
    if len(body) > most_bytes:
        return None, f"the message is larger than the {most_bytes:,} bytes of a wake-up"
    try:
        message: Message[Any] = Message.decode(body)
    except Exception:  # anybody may have written it, and one of them must not stop the sweep of the others
        try:
            record = json.loads(body)
            return uuid.UUID(record["originalJobId"]), "a dead letter"
        except Exception:
            return None, "the message is no JSON of Dramatiq's shape"
    try:
        return uuid.UUID(str(message.kwargs["task_id"])), "the message names a task that does not exist"
    except Exception:
        return None, "the message names no task"


_STATISTICS = text("""
insert into queue_states (queue, statistics)
select q.queue, jsonb_build_object('at', clock_timestamp(),
  'due', (select count(*) from (select 1 from tasks t where t.queue = q.queue and t.status = 'pending'
          and t.run_at <= clock_timestamp() limit 100000) x),
  'running', (select count(*) from tasks t where t.queue = q.queue and t.status = 'in_progress'),
  'dead', (select count(*) from dead_letters d where d.original_queue = q.queue and d.retried_at is null))
from unnest(cast(:queues as text[])) q(queue)
on conflict (queue) do update set statistics = excluded.statistics
""")


def take_statistics(runtime: Runtime) -> dict[str, int]:
    with runtime.database.statement() as connection:
        connection.execute(_STATISTICS, {"queues": list(POLICIES)})
    return {"queues": len(POLICIES)}


#: job -> (cron of its tick, what it does)
JOBS: dict[str, tuple[str, Callable[[Runtime], dict[str, int]]]] = {
    "prune": ("*/10 * * * *", prune),
    "sweep_dead_messages": ("* * * * *", sweep_dead_messages),
    "take_statistics": ("* * * * *", take_statistics),
}


def purge_dead_messages(runtime: Runtime, queue: str | None = None) -> None:
    """Empty one `.XQ` or all of them without a look: for `chronos dlq clear`."""
    for name in POLICIES if queue is None else [queue]:
        left = True
        while left:
            with runtime.transport.dead_messages(name, 1000) as bodies:
                left = bool(bodies)
