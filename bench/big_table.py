"""Claim, relay, finish and reaper on an empty table, then behind millions of finished rows: the cost must not grow."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import text

from chronos.config import Settings
from chronos.engine import schema, tasks
from chronos.models.new_task import NewTask
from chronos.runtime import Runtime
from private_services import PrivatePostgres

TASKS, BATCH, ROUNDS = 20_000, 200, 3

_FINISHED = text("""
insert into tasks (id, user_id, queue, task_name, status, attempt, max_attempts, started_at, finished_at, run_at,
                   wake_at, created_at, idempotency_key, worker)
select gen_random_uuid(), n % 10000, (array['report', 'post', 'broadcast', 'schedule'])[n % 4 + 1], 'noop', 'completed',
       1, 5, now(), now(), now(), now(), now(), 'key-' || n, gen_random_uuid()
from generate_series(cast(:low as int), cast(:high as int)) n
""")


def big_table(folder: Path, rows: int) -> dict[str, object]:
    with PrivatePostgres(folder / "postgres") as postgres:
        runtime = Runtime(Settings(database_url=postgres.url))
        try:
            schema.upgrade(runtime.database)
            empty = _best(runtime)
            print(f"{'finished rows':>14}  us per row: {_words(empty)}  (0 rows)", flush=True)
            for low in range(0, rows, 250_000):
                with runtime.database.statement() as connection:
                    connection.execute(text("set statement_timeout = '10min'"))
                    connection.execute(_FINISHED, {"low": low, "high": min(rows, low + 250_000) - 1})
                print(f"\r{min(rows, low + 250_000):14,} finished rows written", end="", flush=True)
            print()
            with runtime.database.statement() as connection:
                connection.execute(text("set statement_timeout = '10min'"))
                connection.execute(text("vacuum analyze tasks"))
            full = _best(runtime)
            print(f"{rows:14,}  us per row: {_words(full)}", flush=True)
        finally:
            runtime.close()
    ratio = sum(empty.values()) / sum(full.values())
    return {"finished_rows": rows, "us_empty": empty, "us_full": full, "big_table_ratio": round(ratio, 3)}


def _words(costs: dict[str, float]) -> str:
    return "  ".join(f"{name} {cost:.1f}" for name, cost in costs.items())


def _best(runtime: Runtime) -> dict[str, float]:
    """The best of some rounds: noise only ever adds."""
    rounds = [_measure(runtime) for _ in range(ROUNDS)]
    return {name: round(min(one[name] for one in rounds), 1) for name in rounds[0]}


def _measure(runtime: Runtime) -> dict[str, float]:
    """Microseconds per row of each verb, one connection, batches as under load."""
    worker = uuid.uuid4()
    with runtime.loops.statement() as connection:
        connection.execute(
            text("insert into workers (id, name, host, pid, process_start) values (:id, 'bench', 'bench', 1, '')"),
            {"id": worker},
        )
    costs: dict[str, float] = {}

    def timed(name: str, count: int, work: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        answer = work()
        costs[name] = costs.get(name, 0.0) + (time.perf_counter() - started) * 1e6 / count
        return answer

    for start in range(0, TASKS, 1000):
        batch = [NewTask("broadcast", "noop", user_id=n % 100) for n in range(start, start + 1000)]
        timed("submit", TASKS, lambda batch=batch: runtime.submit(*batch))
    with runtime.loops.statement() as connection:
        ids: list[uuid.UUID] = []
        while marked := timed("relay", TASKS, lambda: tasks.mark_published(connection, "broadcast", 1000, 60)):
            ids += [wakeup[0] for wakeup in marked]
        for start in range(0, TASKS, BATCH):
            token, chunk = uuid.uuid4(), ids[start : start + BATCH]
            runs = timed(
                "claim",
                TASKS,
                lambda chunk=chunk, token=token: tasks.claim(connection, "broadcast", chunk, worker, token),
            )
            if start < TASKS - 1000:
                timed(
                    "finish",
                    TASKS - 1000,
                    lambda runs=runs, token=token: tasks.finish(connection, [(r.id, token, None) for r in runs]),
                )
        connection.execute(text("update workers set dead = true where id = :id"), {"id": worker})
        while timed("reap", 1000, lambda: tasks.reap(connection)):
            pass
        connection.execute(text("delete from tasks where status = 'pending'"))
    return costs
