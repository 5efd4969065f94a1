"""The queues as people see and steer them: how deep, how late, which limits; pause and resume."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import text

from chronos.queues import POLICIES, policy_of
from chronos.runtime import Runtime

#: Counting stops here: beyond it the exact number helps nobody, and the list stays quick.
MOST_COUNTED = 100_000


@dataclass(frozen=True)
class QueueOverview:
    queue: str
    waiting: int  #: pending, due or not
    due: int
    running: int
    oldest_due_at: datetime | None
    dead: int  #: dead letters that nobody retried or cleared
    workers: int  #: living ones that serve it
    rate: float | None  #: starts per second
    concurrency: int | None
    paused: bool
    paused_until: datetime | None  #: None while paused: until somebody resumes it
    at: datetime  #: the database's time of this look


_OVERVIEW = text("""
select q.queue, p.waiting, p.due, p.oldest_due_at, clock_timestamp() as at,
  (select count(*) from tasks t where t.queue = q.queue and t.status = 'in_progress') as running,
  (select count(*) from (select 1 from dead_letters d where d.original_queue = q.queue and d.retried_at is null
                         limit :most) x) as dead,
  (select count(*) from workers w where not w.dead and w.queues ? q.queue
     and w.beat_at > clock_timestamp() - :lease * interval '1 second') as workers,
  s.paused_at is not null and coalesce(s.paused_until > clock_timestamp(), true) as paused, s.paused_until
from unnest(cast(:queues as text[])) with ordinality q(queue, place)
left join queue_states s on s.queue = q.queue
cross join lateral (
  select count(*) as waiting, count(*) filter (where run_at <= clock_timestamp()) as due,
         min(run_at) filter (where run_at <= clock_timestamp()) as oldest_due_at
  from (select run_at from tasks t where t.queue = q.queue and t.status = 'pending' limit :most) x) p
order by q.place
""")


def overview(runtime: Runtime) -> list[QueueOverview]:
    with runtime.database.statement() as connection:
        rows = connection.execute(
            _OVERVIEW, {"queues": list(POLICIES), "most": MOST_COUNTED, "lease": runtime.settings.lease}
        ).all()
    return [
        QueueOverview(
            queue=row.queue,
            waiting=row.waiting,
            due=row.due,
            running=row.running,
            oldest_due_at=row.oldest_due_at,
            dead=row.dead,
            workers=row.workers,
            rate=POLICIES[row.queue].rate,
            concurrency=POLICIES[row.queue].concurrency,
            paused=row.paused,
            paused_until=row.paused_until if row.paused else None,
            at=row.at,
        )
        for row in rows
    ]


def pause(runtime: Runtime, queue: str, duration: timedelta | None = None) -> datetime | None:
    """Start nothing more from this queue, delayed work included; what runs goes on. Returns the pause's end."""
    policy_of(queue)
    with runtime.database.statement() as connection:
        until: datetime | None = connection.execute(
            text(
                "insert into queue_states (queue, paused_at, paused_until) values (:queue, clock_timestamp(),"
                " clock_timestamp() + cast(:seconds as float) * interval '1 second') on conflict (queue) do update"
                " set paused_at = excluded.paused_at, paused_until = excluded.paused_until returning paused_until"
            ),
            {"queue": queue, "seconds": duration.total_seconds() if duration else None},
        ).scalar()
    return until


def resume(runtime: Runtime, queue: str) -> bool:
    """Let the queue go on; False: it was not paused."""
    policy_of(queue)
    with runtime.database.statement() as connection:
        was = connection.execute(
            text(
                "with old as (select queue, paused_at is not null and coalesce(paused_until > clock_timestamp(), true)"
                " as paused from queue_states where queue = :queue for update)"
                " update queue_states s set paused_at = null, paused_until = null from old"
                " where s.queue = old.queue returning old.paused"
            ),
            {"queue": queue},
        ).scalar()
    runtime.database.notify(f"due {queue}")
    return bool(was)
