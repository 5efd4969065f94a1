"""What the database knows about the surroundings of one task: pause, workers, limits, the line before it, its past."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from chronos.models import TaskStateRecord
from chronos.runtime import Runtime

#: Of those that come first no more are looked at: the exact number helps nobody.
MOST_COUNTED = 10_000


@dataclass(frozen=True)
class WorkerFacts:
    name: str
    beat_at: datetime
    dead: bool
    death: str | None
    silent: float  #: seconds since its last beat
    threads: int


@dataclass(frozen=True)
class LimitFacts:
    whose: str
    step: float | None
    ahead: float  #: seconds until its next free slot
    max_running: int | None
    running: int
    oldest: datetime | None  #: since when the oldest of the running ones runs

    @property
    def full(self) -> bool:
        return self.max_running is not None and self.running >= self.max_running


@dataclass(frozen=True)
class Facts:
    """What the database knows about the surroundings of the task, all by its own clock."""

    now: datetime
    lease: float
    paused: bool
    paused_until: datetime | None
    workers: list[WorkerFacts]  #: that serve the queue and are not marked dead
    worker: WorkerFacts | None  #: the task's own
    busy: int  #: runs on the workers of the queue
    before: int  #: due tasks of the queue that come first
    limits: list[LimitFacts]
    events: list[Any]
    doubtful: list[str]  #: keys of effects that may have been made
    unknown_actor_minutes: float

    @property
    def living(self) -> list[WorkerFacts]:
        # Nobody marks the last worker dead: its silence has to do.
        return [worker for worker in self.workers if worker.silent <= self.lease]


_QUEUE = text("""
select clock_timestamp() as now, s.paused_until,
       s.paused_at is not null and coalesce(s.paused_until > clock_timestamp(), true) as paused
from (select) one left join queue_states s on s.queue = :queue
""")
_WORKERS = text("""
select id, name, beat_at, dead, death, threads, queues ? :queue as serves,
       extract(epoch from clock_timestamp() - beat_at)::float as silent
from workers where id = :worker or (not dead and queues ? :queue)
""")
_BUSY = text("""
select (select count(*) from tasks t where t.status = 'in_progress'
          and t.worker = any(cast(:workers as uuid[]))) as busy,
       (select count(*) from (select priority, run_at, id from tasks t where t.queue = :queue and t.status = 'pending'
          and t.priority <= :priority and t.run_at <= clock_timestamp() limit :most) x
        where (x.priority, x.run_at, x.id) < (:priority, :run_at, :id)) as before
""")
_LIMITS = text("""
select case when l.task_name is null then 'queue ' || l.queue else l.task_name end as whose,
       extract(epoch from l.step)::float as step, l.max_running, r.running, r.oldest,
       extract(epoch from greatest(l.tat, clock_timestamp() - interval '1 hour') - clock_timestamp())::float as ahead
from limits l cross join lateral (
  select count(*)::int as running, min(t.started_at) as oldest from tasks t where t.queue = l.queue
  and t.status = 'in_progress' and (l.task_name is null or t.task_name = l.task_name)) r
where l.queue = :queue and (l.task_name is null or l.task_name = :name) order by l.key
""")
_EVENTS = text("select at, kind, detail, attempt from task_events where task_id = :id order by id")
_DOUBTFUL = text("select key from sends where task_id = :id and state in ('unknown', 'intent') order by key limit 10")


def facts_about(connection: Connection, runtime: Runtime, task: TaskStateRecord) -> Facts:
    queue = connection.execute(_QUEUE, {"queue": task.queue}).one()
    rows = connection.execute(_WORKERS, {"queue": task.queue, "worker": task.worker}).all()
    workers = {row.id: WorkerFacts(row.name, row.beat_at, row.dead, row.death, row.silent, row.threads) for row in rows}
    serving = [row.id for row in rows if row.serves and not row.dead]
    line = connection.execute(
        _BUSY,
        {
            "queue": task.queue, "workers": serving, "id": task.id, "priority": task.priority,
            "run_at": task.run_at, "most": MOST_COUNTED,
        },
    ).one()  # fmt: skip
    return Facts(
        now=queue.now,
        lease=runtime.settings.lease,
        paused=queue.paused,
        paused_until=queue.paused_until if queue.paused else None,
        workers=[workers[id_] for id_ in serving],
        worker=workers.get(task.worker) if task.worker else None,
        busy=line.busy,
        before=line.before,
        limits=[
            LimitFacts(row.whose, row.step, row.ahead, row.max_running, row.running, row.oldest)
            for row in connection.execute(_LIMITS, {"queue": task.queue, "name": task.task_name})
        ],
        events=list(connection.execute(_EVENTS, {"id": task.id})),
        doubtful=list(connection.execute(_DOUBTFUL, {"id": task.id}).scalars()),
        unknown_actor_minutes=runtime.settings.unknown_actor_minutes,
    )
