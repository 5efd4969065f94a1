"""Every write to tasks.status is in this module.

Each verb is one guarded statement (claims under a limit: one transaction). The guard is the WHERE: a writer that no
longer owns its row changes nothing and learns it from the row count. All times are PostgreSQL's clock_timestamp().
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from chronos.db import WAKE_CHANNEL
from chronos.errors import BadInput
from chronos.models import TaskStatus
from chronos.models.new_task import NewTask
from chronos.models.task import HIGHEST_PRIORITY, LOWEST_PRIORITY, TaskStateRecord
from chronos.queues import POLICIES

#: Rows that one sweep takes at most, so that no sweep holds locks for long.
SWEEP_ROWS = 500
#: Rows of one INSERT.
SUBMIT_ROWS = 1000


@dataclass(frozen=True)
class Submitted:
    id: uuid.UUID
    created: bool  #: False: the idempotency key had been used for the very same task


@dataclass
class Claimed:
    """One run of one task, as the claim gave it to this process."""

    id: uuid.UUID
    token: uuid.UUID
    queue: str
    task_name: str
    attempt: int
    max_attempts: int
    params: dict[str, Any]
    user_id: int | None
    bot_id: int | None
    chat: int | None
    expires_at: datetime | None
    slot: float = 0.0  #: seconds to wait before it may start (rate limits)
    cancelled: bool = False
    effects_open: bool = False
    result: Any = None  #: what the actor returned
    committed: bool = False  #: the actor completed it in its own transaction


#: A run that completes: id, token, result as JSON.
Completion = tuple[uuid.UUID, uuid.UUID, str | None]

_COLUMNS = (
    "id, user_id, bot_id, chat, queue, task_name, params, priority, max_attempts, run_at, wake_at,"
    " expires_at, idempotency_key, schedule_id"
)

# ----------------------------------------------------------------------- conditions that several statements share

_PAUSED = """exists (select from queue_states s where s.queue = {queue} and s.paused_at is not null
              and (s.paused_until is null or s.paused_until > clock_timestamp()))"""
_MAY_RUN = """t.status || '' = 'pending' and t.run_at <= clock_timestamp() and t.attempt < t.max_attempts
       and (t.expires_at is null or t.expires_at > clock_timestamp())"""
# Of rows that are named by their ids. A planner that believes in few pending rows would read all of them instead, by
# the index of the due ones; a statistic is old whenever a backlog has just come.
_PENDING = "t.status || '' = 'pending'"
_WORKER_LIVES = "exists (select from workers w where w.id = :worker and not w.dead)"
_OF_A_RUN = "t.id, t.task_name, t.attempt, t.max_attempts, t.params, t.user_id, t.bot_id, t.chat, t.expires_at"

# ---------------------------------------------------------------------------------------------- submit

_INSERT = text(f"""
insert into tasks ({_COLUMNS})
select d.id, d.user_id, d.bot_id, d.chat, d.queue, d.task_name, d.params, d.priority, d.max_attempts,
       coalesce(d.run_at, clock_timestamp()),
       greatest(coalesce(d.run_at, clock_timestamp()), clock_timestamp() + :hold * interval '1 second'),
       d.expires_at, d.idempotency_key, d.schedule_id
from jsonb_to_recordset(cast(:rows as jsonb)) as d(id uuid, user_id bigint, bot_id bigint, chat bigint, queue text,
       task_name text, params jsonb, priority smallint, max_attempts smallint, run_at timestamptz,
       expires_at timestamptz, idempotency_key text, schedule_id uuid)
on conflict do nothing
returning id
""")

_BY_KEY = text("""
select k.key, t.id, t.queue, t.task_name, t.params from unnest(cast(:keys as text[])) k(key)
join tasks t on t.idempotency_key = k.key
""")


Row = dict[str, Any]


def prepare(tasks: Sequence[NewTask], max_payload_bytes: int) -> list[Row]:
    """Check all of them (BadInput before anything is written) and give each its id.

    The ids come first, so that a write whose answer was lost can be repeated without making a second task.
    """
    return [task.checked(max_payload_bytes) for task in tasks]


def submit(connection: Connection, rows: Sequence[Row], *, hold: float = 0.0, notify: bool = True) -> list[Submitted]:
    """Write prepared rows in the caller's transaction; `hold` seconds keep the relay away from what the caller
    publishes itself. Repeating it with the same rows changes nothing.
    """
    first_with: dict[str, Row] = {}
    fresh: list[Row] = []
    for row in rows:
        key = row["idempotency_key"]
        if key is None:
            fresh.append(row)
        elif key in first_with:
            _same_or_refuse(key, first_with[key], row)
        else:
            first_with[key] = row
            fresh.append(row)
    written: set[uuid.UUID] = set()
    stored: dict[str, uuid.UUID] = {}
    left = fresh
    while left:
        for start in range(0, len(left), SUBMIT_ROWS):
            payload = "[" + ",".join(_row_json(row) for row in left[start : start + SUBMIT_ROWS]) + "]"
            written.update(connection.execute(_INSERT, {"rows": payload, "hold": hold}).scalars())
        taken = [key for key, row in first_with.items() if row["id"] not in written and key not in stored]
        for found in connection.execute(_BY_KEY, {"keys": taken}) if taken else ():
            _same_or_refuse(
                found.key,
                {"queue": found.queue, "task_name": found.task_name, "params": json.dumps(found.params)},
                first_with[found.key],
            )
            stored[found.key] = found.id
        # A key whose task was pruned between the two statements is free again.
        left = [first_with[key] for key in taken if key not in stored]
    if notify and written:
        for queue in {row["queue"] for row in fresh}:
            connection.execute(text("select pg_notify(:c, :p)"), {"c": WAKE_CHANNEL, "p": f"due {queue}"})
    answers = []
    for row in rows:
        key = row["idempotency_key"]
        id_ = row["id"]
        if key is not None:
            id_ = stored[key] if key in stored else first_with[key]["id"]
        answers.append(Submitted(id_, created=id_ == row["id"]))
    return answers


def _row_json(row: dict[str, Any]) -> str:
    """The row as JSON, its params spliced in as they are: they have been serialised once already."""
    head = {name: value for name, value in row.items() if name != "params" and value is not None}
    text_ = json.dumps(head, default=lambda value: value.isoformat() if isinstance(value, datetime) else str(value))
    return f'{text_[:-1]}, "params": {row["params"]}}}'


def _same_or_refuse(key: str, stored: dict[str, Any], asked: dict[str, Any]) -> None:
    same = (
        stored["queue"] == asked["queue"]
        and stored["task_name"] == asked["task_name"]
        and json.loads(stored["params"]) == json.loads(asked["params"])
    )
    if not same:
        raise BadInput(
            f"idempotency key {key!r} belongs to another task ({stored['task_name']} with other params): use a new key",
            "key_taken",
        )


# ----------------------------------------------------------------------------------------------- claim

_CLAIM = text(f"""
update tasks t set status = 'in_progress', attempt = t.attempt + (t.status = 'pending')::int, worker = :worker,
       token = :token, started_at = clock_timestamp(), updated_at = clock_timestamp()
where t.id = any(cast(:ids as uuid[])) and t.queue = :queue and ({_MAY_RUN} or t.token = :token)
  and not {_PAUSED.format(queue=":queue")} and not exists (select from limits l where l.queue = :queue)
  and {_WORKER_LIVES}
returning {_OF_A_RUN}
""")


def claim(
    connection: Connection, queue: str, ids: Sequence[uuid.UUID], worker: uuid.UUID, token: uuid.UUID
) -> list[Claimed]:
    """Take what may run now, in the order of `ids`. Repeating it with the same token after a lost answer is safe."""
    rows = connection.execute(_CLAIM, {"ids": list(ids), "queue": queue, "worker": worker, "token": token})
    place = {id_: index for index, id_ in enumerate(ids)}
    return sorted((_claimed(row, queue, token) for row in rows), key=lambda task: place[task.id])


def _claimed(row: Any, queue: str, token: uuid.UUID) -> Claimed:
    return Claimed(
        row.id, token, queue, row.task_name, row.attempt, row.max_attempts, row.params,
        row.user_id, row.bot_id, row.chat, row.expires_at,
    )  # fmt: skip


_WHY = text(f"""
select i.id, case
  when t.id is null then 'no row'
  when t.status <> 'pending' then 'done'
  when not {_WORKER_LIVES} then 'worker dead'
  when t.queue <> :queue then 'wrong queue'
  when t.expires_at <= clock_timestamp() then 'expired'
  when t.run_at > clock_timestamp() then 'not due'
  when {_PAUSED.format(queue="t.queue")} then 'paused'
  when t.attempt >= t.max_attempts then 'exhausted'
  else 'done' end as why
from unnest(cast(:ids as uuid[])) i(id) left join tasks t on t.id = i.id
""")


def why_refused(
    connection: Connection, queue: str, ids: Sequence[uuid.UUID], worker: uuid.UUID
) -> dict[uuid.UUID, str]:
    """no row, done, worker dead, wrong queue, expired, not due, paused or exhausted, for each id."""
    rows = connection.execute(_WHY, {"ids": list(ids), "queue": queue, "worker": worker})
    return {row.id: row.why for row in rows}


# A procedure of the database (migration 0003): lock, finish, count and take in one round trip.
_CLAIM_WITHIN_LIMITS = text(
    "call claim_within_limits(:queue, cast(:ended as uuid[]), cast(:ended_tokens as uuid[]), cast(:results as text[]),"
    " cast(:ids as uuid[]), :worker, :token, :horizon, null)"
)


@dataclass(frozen=True)
class Refusal:
    """A task is pending and due, and only a limit says no."""

    full: bool  #: as many run as may run at once
    own: bool  #: a limit of its actor says no, not only one of the queue
    next_slot: float  #: seconds until the rates that say no allow a start


@dataclass(frozen=True)
class LimitedClaim:
    claimed: list[Claimed]
    refused: dict[uuid.UUID, Refusal]


def claim_limited(
    connection: Connection,
    queue: str,
    ids: Sequence[uuid.UUID],
    worker: uuid.UUID,
    token: uuid.UUID,
    horizon: float,
    ended: Sequence[Completion] = (),
) -> LimitedClaim:
    """Claim as many as the limits allow over all processes; starts may be reserved up to `horizon` seconds ahead.

    Completes the `ended` runs first, so that their places can be taken. It commits by itself. Repeating it with the
    same token after a lost answer is safe.
    """
    ordered = sorted(ended, key=lambda run: run[0])
    answer: dict[str, Any] = connection.execute(
        _CLAIM_WITHIN_LIMITS,
        {
            "queue": queue, "ids": list(ids), "worker": worker, "token": token, "horizon": horizon,
            "ended": [run[0] for run in ordered], "ended_tokens": [run[1] for run in ordered],
            "results": [run[2] for run in ordered],
        },
    ).scalar_one()  # fmt: skip
    claimed = [
        Claimed(
            **{**row, "id": uuid.UUID(row["id"]), "expires_at": _moment(row["expires_at"])}, queue=queue, token=token
        )
        for row in answer["claimed"]
    ]
    return LimitedClaim(claimed, {uuid.UUID(id_): Refusal(**why) for id_, why in answer["refused"].items()})


def _moment(text_: str | None) -> datetime | None:
    return None if text_ is None else datetime.fromisoformat(text_)


# ------------------------------------------------------------------------------------- outcomes of a run

_FINISH = text("""
update tasks t set status = 'completed', result_payload = cast(d.result as jsonb), finished_at = clock_timestamp(),
       updated_at = clock_timestamp(), token = null, progress = null, error_message = null, error_class = null,
       error_traceback = null
from unnest(cast(:ids as uuid[]), cast(:tokens as uuid[]), cast(:results as text[])) d(id, token, result)
where t.id = d.id and t.token = d.token returning t.id
""")


def finish(connection: Connection, runs: Sequence[Completion]) -> set[uuid.UUID]:
    """Complete many runs in one statement. Returns the ids that were still owned."""
    ordered = sorted(runs, key=lambda run: run[0])
    return set(
        connection.execute(
            _FINISH,
            {
                "ids": [run[0] for run in ordered],
                "tokens": [run[1] for run in ordered],
                "results": [run[2] for run in ordered],
            },
        ).scalars()
    )


_RELEASE = text("""
with moved as (
  update tasks t set
    status = case when cancel_requested_at is not null then 'cancelled' else 'pending' end,
    finished_at = case when cancel_requested_at is not null then clock_timestamp() end,
    attempt = attempt - :give_back, token = null, updated_at = clock_timestamp(),
    run_at = case when :wait > 0 then clock_timestamp() + :wait * interval '1 second' else run_at end,
    wake_at = case when :wait > 0 then clock_timestamp() + :wait * interval '1 second' else run_at end,
    error_message = coalesce(:error, error_message), error_class = coalesce(:class, error_class),
    error_traceback = coalesce(:traceback, error_traceback)
  where t.id = :id and t.token = :token returning t.id, t.status, t.queue, t.attempt + :give_back as attempt
), noted as (
  insert into task_events (task_id, kind, detail, attempt, seconds)
  select id, case when status = 'cancelled' then 'cancelled' else :kind end, :detail, attempt, :wait from moved
  where :kind <> ''
), woken as (select pg_notify(:channel, 'due ' || queue) from moved where :wait <= 0 and status = 'pending')
select status from moved left join woken on true
""")


def _release(
    connection: Connection, run: Claimed, kind: str, *, wait: float, give_back: bool, detail: str,
    error: dict[str, str | None] | None = None,
) -> str | None:  # fmt: skip
    error = error or {}
    return connection.execute(
        _RELEASE,
        {
            "id": run.id, "token": run.token, "give_back": int(give_back), "wait": wait, "kind": kind,
            "detail": detail, "error": error.get("message"), "class": error.get("class"),
            "traceback": error.get("traceback"), "channel": WAKE_CHANNEL,
        },
    ).scalar()  # fmt: skip


def retry(connection: Connection, run: Claimed, wait: float, error: dict[str, str | None]) -> str | None:
    """Pending again after a backoff. None: the row was no longer this run's."""
    return _release(connection, run, "retry", wait=wait, give_back=False, detail=error["message"] or "", error=error)


def later(connection: Connection, run: Claimed, wait: float, why: str) -> str | None:
    return _release(connection, run, "later", wait=wait, give_back=True, detail=why)


def hand_back(connection: Connection, run: Claimed, why: str, wait: float = 0.0) -> str | None:
    return _release(connection, run, "handed back" if why else "", wait=wait, give_back=True, detail=why)


_BURY = """
  insert into dead_letters (id, task_id, original_queue, original_job_id, original_job_data, failure_reason,
                            attempts_made, error_class, traceback, fingerprint)
  select gen_random_uuid(), id, queue, id::text, params, error_message, attempt, error_class, error_traceback,
         md5(queue || ' ' || task_name || ' ' || coalesce(error_class, '') || ' '
             || regexp_replace(error_message, '[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+', '#', 'g'))
  from moved where status = 'failed' on conflict do nothing
"""

_END = text(f"""
with moved as (
  update tasks t set status = :status, finished_at = clock_timestamp(), updated_at = clock_timestamp(), token = null,
    error_message = coalesce(:error, error_message), error_class = coalesce(:class, error_class),
    error_traceback = coalesce(:traceback, error_traceback)
  where t.id = :id and t.token = :token
  returning t.id, t.status, t.queue, t.task_name, t.params, t.attempt, t.error_message, t.error_class, t.error_traceback
), noted as (
  insert into task_events (task_id, kind, detail, attempt) select id, :status, coalesce(:error, ''), attempt from moved
), doubted as (
  update sends s set state = 'unknown', updated_at = clock_timestamp() from moved
  where s.task_id = moved.id and s.state = 'intent' and :status = 'unknown'
), buried as ({_BURY})
select status from moved
""")


def _end(connection: Connection, run: Claimed, status: TaskStatus, error: dict[str, str | None]) -> str | None:
    return connection.execute(
        _END,
        {
            "id": run.id, "token": run.token, "status": status, "error": error.get("message"),
            "class": error.get("class"), "traceback": error.get("traceback"),
        },
    ).scalar()  # fmt: skip


def fail(connection: Connection, run: Claimed, error: dict[str, str | None]) -> str | None:
    """Failed for good, with its dead letter in the same statement."""
    return _end(connection, run, TaskStatus.FAILED, error)


def doubt(connection: Connection, run: Claimed, error: dict[str, str | None]) -> str | None:
    return _end(connection, run, TaskStatus.UNKNOWN, error)


def end_cancelled(connection: Connection, run: Claimed, why: str) -> str | None:
    return _end(connection, run, TaskStatus.CANCELLED, {"message": why})


def end_expired(connection: Connection, run: Claimed, why: str) -> str | None:
    return _end(connection, run, TaskStatus.EXPIRED, {"message": why})


def lock_owned(connection: Connection, run: Claimed) -> bool:
    """Lock the task's row for the caller's transaction; False: it is no longer this run's."""
    found = connection.execute(
        text("select 1 from tasks where id = :id and token = :token for update"),
        {"id": run.id, "token": run.token},
    )
    return found.scalar() is not None


def store_progress(connection: Connection, run: Claimed, facts: str) -> bool:
    """False: the row is no longer this run's."""
    statement = text("update tasks set progress = cast(:p as jsonb) where id = :id and token = :token")
    done = connection.execute(statement, {"p": facts, "id": run.id, "token": run.token})
    return done.rowcount == 1


# ------------------------------------------------------------------------------- what people and loops do

_CANCEL = text("""
with moved as (
  update tasks set status = case when status = 'pending' then 'cancelled' else status end,
    finished_at = case when status = 'pending' then clock_timestamp() end,
    cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp()), updated_at = clock_timestamp()
  where id = :id and status in ('pending', 'in_progress') returning id, status, attempt
), noted as (
  insert into task_events (task_id, kind, detail, attempt)
  select id, case when status = 'cancelled' then 'cancelled' else 'cancel asked' end, :by, attempt from moved
), told as (select pg_notify(:channel, 'cancel ' || id) from moved where status = 'in_progress')
select status from moved left join told on true
""")


def cancel(connection: Connection, id_: uuid.UUID, by: str) -> str | None:
    """'cancelled' at once, 'in_progress' (asked for), or None when there was nothing left to cancel."""
    return connection.execute(_CANCEL, {"id": id_, "by": by, "channel": WAKE_CHANNEL}).scalar()


_EXPIRE = text("""
with due as (
  select id from tasks
  where status = 'pending' and expires_at is not null and expires_at <= (select clock_timestamp())
  order by expires_at limit :rows for update skip locked
), moved as (
  update tasks t set status = 'expired', finished_at = clock_timestamp(), updated_at = clock_timestamp()
  from due where t.id = due.id returning t.id, t.attempt
)
insert into task_events (task_id, kind, detail, attempt) select id, 'expired', 'not started in time', attempt from moved
""")


def expire(connection: Connection) -> int:
    return connection.execute(_EXPIRE, {"rows": SWEEP_ROWS}).rowcount


_REVIVE = text("""
with moved as (
  update tasks t set status = 'pending', attempt = 0, crashes = 0, finished_at = null, cancel_requested_at = null,
    expires_at = null, run_at = clock_timestamp(), wake_at = clock_timestamp(), updated_at = clock_timestamp()
  where t.id = any(cast(:ids as uuid[])) and t.status in ('failed', 'unknown') returning t.id, t.queue
), noted as (
  insert into task_events (task_id, kind, detail) select id, 'revived', :by from moved
), again as (
  update sends s set state = 'not_sent', repeats = 0, updated_at = clock_timestamp() from moved
  where s.task_id = moved.id and s.state in ('unknown', 'intent')
), letters as (
  update dead_letters d set retried_at = clock_timestamp() from moved where d.task_id = moved.id and retried_at is null
), woken as (select pg_notify(:channel, 'due ' || queue) from (select distinct queue from moved) q)
select id from moved left join (select count(*) from woken) w on true
""")


def revive(connection: Connection, ids: Sequence[uuid.UUID], by: str) -> list[uuid.UUID]:
    """Failed or unknown tasks run again, with all their attempts; an unknown effect may be made again."""
    return list(connection.execute(_REVIVE, {"ids": list(ids), "by": by, "channel": WAKE_CHANNEL}).scalars())


_ARRIVED = text("""
with moved as (
  update tasks set status = 'completed', error_message = null, error_class = null, updated_at = clock_timestamp()
  where id = :id and status = 'unknown' returning id
), noted as (insert into task_events (task_id, kind, detail) select id, 'arrived', :by from moved),
kept as (update sends s set state = 'sent', updated_at = clock_timestamp() from moved
         where s.task_id = moved.id and s.state = 'unknown')
select id from moved
""")


def mark_arrived(connection: Connection, id_: uuid.UUID, by: str) -> bool:
    return connection.execute(_ARRIVED, {"id": id_, "by": by}).scalar() is not None


# The task's row is locked first, so that two people who press two buttons at once do it one after the other.
_DECIDE = text("""
with held as (
  select id, queue from tasks where id = :id and status = 'unknown' for update
), decided as (
  update sends s set state = :state, repeats = case when :state = 'not_sent' then 0 else s.repeats end,
    updated_at = clock_timestamp()
  from held where s.task_id = held.id and s.key = :key and s.state = 'unknown' returning s.task_id
), open as (
  select count(*) as effects from sends s, held where s.task_id = held.id and s.key <> :key and s.state = 'unknown'
), moved as (
  update tasks t set status = 'pending', attempt = 0, crashes = 0, finished_at = null, cancel_requested_at = null,
    expires_at = null, run_at = clock_timestamp(), wake_at = clock_timestamp(), updated_at = clock_timestamp()
  from decided, open where t.id = decided.task_id and (open.effects = 0 or :state = 'not_sent') returning t.id, t.queue
), noted as (
  insert into task_events (task_id, kind, detail)
  select task_id, case when :state = 'not_sent' then 'send again' else 'arrived' end, :key || ', ' || :by from decided
), woken as (select pg_notify(:channel, 'due ' || queue) from moved)
select case when moved.id is null then 'unknown' else 'pending' end
from decided left join moved on true left join woken on true
""")


def send_again(connection: Connection, id_: uuid.UUID, key: str, by: str) -> str | None:
    """Make this one effect again: the task runs, what it made stays made, and its other unknown effects stay unknown.

    'pending', or None when there was nothing to decide any more (a second tap on the button).
    """
    return _decide(connection, id_, key, "not_sent", by)


def go_on(connection: Connection, id_: uuid.UUID, key: str, by: str) -> str | None:
    """Somebody saw that this one effect arrived. With the last unknown one the task runs on behind it: 'pending'.

    'unknown' while others are undecided; None when there was nothing to decide any more.
    """
    return _decide(connection, id_, key, "sent", by)


def _decide(connection: Connection, id_: uuid.UUID, key: str, state: str, by: str) -> str | None:
    facts = {"id": id_, "key": key, "state": state, "by": by, "channel": WAKE_CHANNEL}
    return connection.execute(_DECIDE, facts).scalar()


_REAP = text(f"""
with lost as materialized (
  select t.id, exists (select from sends s where s.task_id = t.id and s.state = 'intent'
                       and not (t.queue = any(cast(:repeatable as text[])) and s.repeats = 0)) as in_doubt
  from tasks t
  where t.status = 'in_progress' and not exists (select from workers w where w.id = t.worker and not w.dead)
  order by t.id limit :rows for update skip locked
), moved as (
  update tasks t set crashes = t.crashes + 1, token = null, updated_at = clock_timestamp(),
    status = case when lost.in_doubt then 'unknown' when t.cancel_requested_at is not null then 'cancelled'
                  when t.attempt >= t.max_attempts then 'failed' else 'pending' end,
    finished_at = case when lost.in_doubt or t.cancel_requested_at is not null or t.attempt >= t.max_attempts
                       then clock_timestamp() end,
    error_class = 'WorkerDied',
    error_message = case when lost.in_doubt then 'the worker died while an effect was being made: it may have happened'
                         else 'the worker died while the task ran' end,
    run_at = case when t.crashes = 0 then t.run_at
                  else clock_timestamp() + (2 ^ t.crashes) * (1 + random() * 0.2) * interval '1 second' end,
    wake_at = case when t.crashes = 0 then t.run_at
                   else clock_timestamp() + (2 ^ t.crashes) * (1 + random() * 0.2) * interval '1 second' end
  from lost where t.id = lost.id
  returning t.id, t.status, t.queue, t.task_name, t.params, t.attempt, t.error_message, t.error_class, t.error_traceback
), noted as (
  insert into task_events (task_id, kind, detail, attempt)
  select id, case when status = 'pending' then 'crash' else status end, error_message, attempt from moved
), doubted as (
  update sends s set state = 'unknown', updated_at = clock_timestamp() from moved
  where s.task_id = moved.id and s.state = 'intent' and moved.status = 'unknown'
), buried as ({_BURY})
select id, status, queue, task_name from moved
""")

REPEATABLE = [policy.name for policy in POLICIES.values() if policy.repeat_unknown]


def reap(connection: Connection) -> list[tuple[uuid.UUID, str]]:
    """Take every running task that has no living worker; (id, new status)."""
    rows = connection.execute(_REAP, {"rows": SWEEP_ROWS, "repeatable": REPEATABLE})
    return [(row.id, row.status) for row in rows]


_ORPHANS = text("""
select t.id, t.token, t.queue, t.task_name, t.attempt, t.max_attempts, t.cancel_requested_at is not null as cancelled
from tasks t where t.queue = any(cast(:queues as text[])) and t.worker = :worker and t.status = 'in_progress'
""")


def running_of(connection: Connection, worker: uuid.UUID) -> list[Any]:
    """What the table says that this worker runs."""
    return list(connection.execute(_ORPHANS, {"worker": worker, "queues": list(POLICIES)}))


# A refusal counts until the task runs or is revived: with the next deploy it waits its whole time again.
_REFUSED_SINCE = """(select min(e.at) from task_events e where e.task_id = {task}.id and e.kind = 'refused'
    and e.at > coalesce({task}.started_at, '-infinity')
    and e.at > coalesce((select max(r.at) from task_events r
                         where r.task_id = {task}.id and r.kind = 'revived'), '-infinity'))"""
_REFUSE = text(f"""
with first as (
  insert into task_events (task_id, kind, detail)
  select t.id, 'refused', :why from tasks t where t.id = any(cast(:ids as uuid[])) and {_PENDING}
    and {_REFUSED_SINCE.format(task="t")} is null
), moved as (
  update tasks t set
    status = case when seen.at < clock_timestamp() - :minutes * interval '1 minute' then 'failed' else 'pending' end,
    finished_at = case when seen.at < clock_timestamp() - :minutes * interval '1 minute' then clock_timestamp() end,
    error_message = :why, error_class = 'UnknownActor', updated_at = clock_timestamp(),
    wake_at = clock_timestamp() + interval '5 seconds'
  from tasks p cross join lateral (select {_REFUSED_SINCE.format(task="p")} as at) seen
  where p.id = any(cast(:ids as uuid[])) and t.id = p.id and {_PENDING}
  returning t.id, t.status, t.queue, t.task_name, t.params, t.attempt, t.error_message, t.error_class, t.error_traceback
), buried as ({_BURY})
select id, status from moved
""")


def refuse(connection: Connection, ids: Sequence[uuid.UUID], why: str, minutes: float) -> None:
    """No worker here knows the actor or version: wait for one that does, then the dead letters."""
    connection.execute(_REFUSE, {"ids": list(ids), "why": why, "minutes": minutes})


_PRIORITIES = f"unnest(array{list(range(HIGHEST_PRIORITY, LOWEST_PRIORITY + 1))}::smallint[]) p"

# One index range per priority: a range over all of them would read every task that waits for tomorrow.
_DUE = text(f"""
select q.queue from unnest(cast(:queues as text[])) q(queue)
where exists (select from {_PRIORITIES} where exists (
        select from tasks t where t.queue = q.queue and t.status = 'pending' and t.priority = p
          and t.wake_at <= (select clock_timestamp())))
  and not {_PAUSED.format(queue="q.queue")}
""")
_MARK = text(f"""
with c as materialized (select x.id from {_PRIORITIES} cross join lateral
   (select id from tasks where queue = :queue and priority = p and status = 'pending'
    and wake_at <= (select clock_timestamp()) order by wake_at limit :n for update skip locked) x limit :n)
update tasks t set wake_at = clock_timestamp() + :lease * interval '1 second' from c where t.id = c.id
returning t.id, t.task_name, t.user_id, t.priority, t.run_at
""")
_WAKE_MARKED = text(f"""
update tasks t set wake_at = t.run_at from {_PRIORITIES}, unnest(cast(:queues as text[])) q(queue)
where t.queue = q.queue and t.priority = p and t.status = 'pending' and t.run_at <= clock_timestamp()
  and t.wake_at between (select clock_timestamp()) and (select clock_timestamp()) + interval '1 hour'
""")


def due_queues(connection: Connection) -> list[str]:
    """Queues that are not paused and have something to publish."""
    return list(connection.execute(_DUE, {"queues": list(POLICIES)}).scalars())


def mark_published(
    connection: Connection, queue: str, most: int, lease: float
) -> list[tuple[uuid.UUID, str, int | None]]:
    """Due tasks, the first to run first; nobody publishes them again before a lease has passed."""
    rows = sorted(
        connection.execute(_MARK, {"queue": queue, "n": most, "lease": lease}),
        key=lambda row: (row.priority, row.run_at, row.id),
    )
    return [(row.id, row.task_name, row.user_id) for row in rows]


def wake_marked(connection: Connection) -> None:
    """Publish again whatever is marked as published and was not claimed: its messages may never have arrived."""
    connection.execute(_WAKE_MARKED, {"queues": list(POLICIES)})


_WAKE = text(f"""
update tasks t set wake_at = clock_timestamp() + d.wait * interval '1 second'
from unnest(cast(:ids as uuid[]), cast(:waits as float[])) d(id, wait) where t.id = d.id and {_PENDING}
""")


def wake_each(connection: Connection, waits: Sequence[tuple[uuid.UUID, float]]) -> None:
    """Let the relay publish each again after so many seconds; run_at and status stay."""
    ordered = sorted(waits)
    connection.execute(_WAKE, {"ids": [id_ for id_, _ in ordered], "waits": [wait for _, wait in ordered]})


def wake(connection: Connection, ids: Sequence[uuid.UUID]) -> None:
    """The same, at once."""
    wake_each(connection, [(id_, 0.0) for id_ in ids])


def find(connection: Connection, id_: str, *, user_id: int | None = None) -> TaskStateRecord:
    """A task by its id or by the beginning of it, as people copy it from a chat; of one user, if one is given."""
    try:
        wanted = uuid.UUID(id_)
        low = high = wanted
    except ValueError:
        digits = id_.replace("-", "").lower()
        if not digits or len(digits) > 32 or any(c not in "0123456789abcdef" for c in digits):
            raise BadInput(f"{id_!r} is no task id", "no_task_id", given=id_) from None
        low, high = uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))
    rows = connection.execute(
        text(
            # Not one statement for both: its plan would read every task for the one of a user.
            f"select * from tasks where id between :low and :high{'' if user_id is None else ' and user_id = :user'}"
            " order by id limit 2"
        ),
        {"low": low, "high": high} | ({} if user_id is None else {"user": user_id}),
    ).all()
    if not rows:
        raise BadInput(f"there is no task {id_}", "no_task", given=id_)
    if len(rows) > 1:
        raise BadInput(f"more than one task begins with {id_}: give more of its id", "several_tasks", given=id_)
    return TaskStateRecord.model_validate(dict(rows[0]._mapping))
