"""Housekeeping ticks: from real periodiq processes over RabbitMQ, and in the embedded mode without one."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from chronos.config import settings
from chronos.housekeeping import JOBS
from chronos.runtime import runtime as the_runtime
from tests.processes import ROOT, Workers, eventually

EVERY_MINUTE = {job for job, (spec, _) in JOBS.items() if spec.startswith("* ")}


def housekeeping(workers: Workers) -> list[Any]:
    return workers.sql(
        "select split_part(idempotency_key, ':', 2) as job, split_part(idempotency_key, ':', 3) as minute, status"
        " from tasks where task_name = 'keep_house' order by 1, 2"
    )


@pytest.mark.rabbitmq
def test_the_ticks_of_two_periodiq_processes_become_one_task_per_job_and_minute(workers: Workers) -> None:
    """periodiq gives the ticks of the running minute when it starts, so nobody has to wait for the next one."""
    workers.start(1, CHRONOS_LOG_LEVEL="info")
    tickers = [periodiq(workers, number) for number in range(2)]
    try:
        # Both processes ticked every job: all ticks arrived at the worker, which says so.
        eventually(
            lambda: workers.logs().count("Processing") >= 2 * len(EVERY_MINUTE),
            seconds=90,  # periodiq waits for the next minute when this one is nearly over
            what=workers.logs(),
        )
        eventually(lambda: {row.status for row in housekeeping(workers)} == {"completed"}, what=workers.logs())
    finally:
        for ticker in tickers:
            ticker.terminate()
            ticker.wait(10)
    rows = housekeeping(workers)
    assert {row.job for row in rows} >= EVERY_MINUTE
    assert len(rows) == len({(row.job, row.minute) for row in rows})
    # Two processes may have ticked two different minutes, never more than one task for each.
    assert len(rows) <= 2 * len(JOBS)
    assert workers.sql("select count(*) from queue_states where statistics is not null") != [(0,)]


def periodiq(workers: Workers, number: int) -> subprocess.Popen[bytes]:
    with open(workers.folder / f"periodiq{number}.log", "wb") as log:
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("periodiq")), "chronos.actors"],
            env=workers.environment,
            cwd=ROOT,
            stdout=log,
            stderr=log,
        )


def test_embedded_ticks_become_one_task_per_job_and_minute_without_a_second_process(
    embedded: Workers, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHRONOS_DATABASE_URL", database_url)
    settings.cache_clear()
    the_runtime.cache_clear()
    from chronos.ticks import give_those_of

    hour, half_past = datetime(2030, 1, 1, 12, 17, tzinfo=UTC), datetime(2030, 1, 1, 12, 30, tzinfo=UTC)
    for minute in (half_past, half_past, hour, hour):
        give_those_of(minute)
    the_runtime().close()
    rows = housekeeping(embedded)
    assert {row.job for row in rows} == set(JOBS)
    assert len(rows) == len({(row.job, row.minute) for row in rows})


def test_a_tick_comes_once_per_minute_and_again_when_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    from chronos import ticks

    now, given = [1000 * 60.0], []
    monkeypatch.setattr(ticks.time, "time", lambda: now[0])
    monkeypatch.setattr(ticks, "give_those_of", lambda minute: given.append(minute) or fails())
    broken = [True]

    def fails() -> None:
        if broken[0]:
            raise RuntimeError("PostgreSQL is away")

    made = ticks.Ticks()
    made.give()
    assert given == []
    now[0] += 60
    with pytest.raises(RuntimeError):
        made.give()
    broken[0] = False
    made.give()
    made.give()
    assert len(given) == 2
