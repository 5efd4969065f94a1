"""The limits as rows: what the code declares is stored when a worker boots, the claim (tasks.py) obeys the rows."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, text

_STORE = text("""
insert into limits (key, queue, task_name, step, max_running)
values (:key, :queue, :task_name, :step * interval '1 second', :max_running)
on conflict (key) do update set step = excluded.step, max_running = excluded.max_running, queue = excluded.queue
where (limits.step, limits.max_running, limits.queue)
      is distinct from (excluded.step, excluded.max_running, excluded.queue)
""")


def store(connection: Connection, limits: Sequence[dict[str, object]], gone: Sequence[str]) -> None:
    """The limits that this code declares, and the keys of which it knows that they have none any more."""
    for limit in limits:
        connection.execute(_STORE, limit)
    connection.execute(text("delete from limits where key = any(:gone)"), {"gone": list(gone)})


def exist(connection: Connection, queue: str) -> bool:
    found = connection.execute(text("select exists (select from limits where queue = :queue)"), {"queue": queue})
    return bool(found.scalar_one())
