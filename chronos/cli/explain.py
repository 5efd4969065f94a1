"""Why is this task not running? One sentence, then its story."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from chronos.models import TaskStateRecord
from chronos.runtime import Runtime


def explain(runtime: Runtime, task: TaskStateRecord) -> dict[str, Any]:
    with runtime.database.statement() as connection:
        facts = connection.execute(
            text("""
            select clock_timestamp() as now,
              (select coalesce(s.paused_until::text, 'it is resumed') from queue_states s where s.queue = :q
               and s.paused_at is not null and coalesce(s.paused_until > clock_timestamp(), true)) as paused,
              (select count(*) from workers w where not w.dead and w.queues ? :q) as workers,
              (select count(*) from tasks t where t.queue = :q and t.status = 'in_progress') as running,
              (select l.max_running from limits l where l.key = 'queue:' || :q) as most,
              (select w.name || ', beat ' || round(extract(epoch from clock_timestamp() - w.beat_at)) || ' s ago'
                 || case when w.dead then ', dead' when w.beat_at < clock_timestamp() - :stuck * interval '1 second'
                    then ', stuck' else '' end from workers w where w.id = :w) as worker
            """),
            {"q": task.queue, "w": task.worker, "stuck": runtime.settings.lease * 2 / 3},
        ).one()
        events = connection.execute(
            text("select at, kind, detail, attempt from task_events where task_id = :id order by id"),
            {"id": task.id},
        ).all()
    story: list[dict[str, Any]] = [{"at": task.created_at, "what": f"accepted in queue {task.queue}"}]
    story += [
        {"at": e.at, "what": f"{e.kind}{f' (run {e.attempt})' if e.attempt else ''}: {e.detail}".rstrip(": ")}
        for e in events
    ]
    if task.started_at:
        story.append(
            {
                "at": task.started_at,
                "what": f"run {task.attempt} started on {facts.worker or 'a worker of old'}",
            }
        )
    if task.finished_at:
        story.append({"at": task.finished_at, "what": str(task.status)})
    story.sort(key=lambda event: event["at"])
    return {"id": task.id, "status": task.status, "now": _now(task, facts), "events": story}


def _now(task: TaskStateRecord, facts: Any) -> str:
    name = f"{task.task_name} {task.id}"
    if task.status == "in_progress":
        asked = "; it was asked to stop" if task.cancel_requested_at else ""
        return f"{name} runs, attempt {task.attempt} of {task.max_attempts}, on {facts.worker}{asked}"
    if task.status != "pending":
        return f"{name} is {task.status}" + (f": {task.error_message}" if task.error_message else "")
    if facts.paused:
        return f"{name} waits: queue {task.queue} is paused until {facts.paused}"
    if task.run_at > facts.now:
        why = f" after: {task.error_message}" if task.attempt else ""
        return f"{name} waits for its time, {task.run_at:%Y-%m-%d %H:%M:%S%z}{why}"
    if facts.workers == 0:
        return f"{name} waits: no living worker serves queue {task.queue}; start one with `chronos worker`"
    if facts.most is not None and facts.running >= facts.most:
        return f"{name} waits: the limit of queue {task.queue} is {facts.most} at once, all in use"
    return f"{name} is due and will be taken by one of {facts.workers} workers"
