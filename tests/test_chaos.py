"""A small selection of `make chaos` that judges only what no machine is too slow for: never lost, doubled, exceeded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from chaos.breaks import BREAKS, break_database
from chaos.checks import kills, rate, sends
from chaos.effects import most_in_a_second
from chaos.harness import ROOT, Chaos
from chaos.verdicts import Counts, Row, compare
from private_services import PrivatePostgres, PrivateRabbitMQ


@pytest.fixture
def chaos(postgres: PrivatePostgres, rabbitmq: PrivateRabbitMQ, amqp_url: str, tmp_path: Path) -> Iterator[Chaos]:
    made = Chaos(postgres, rabbitmq, tmp_path, seed=1, amqp_url=amqp_url)
    yield made
    made.close()


@pytest.mark.rabbitmq
def test_killed_workers_lose_and_double_nothing(chaos: Chaos) -> None:
    verdict = kills.run(chaos, tasks=300, kill_every=1.0)
    assert verdict.passed, verdict.failures
    assert verdict.measured["kills"] >= 1


@pytest.mark.rabbitmq
def test_a_rate_is_never_exceeded_over_three_processes(chaos: Chaos) -> None:
    verdict = rate.run(chaos, seconds=4)
    assert verdict.counts == Counts()
    assert verdict.measured["most"] <= 51


@pytest.mark.rabbitmq
def test_what_telegrams_faults_leave_agrees_with_its_log(chaos: Chaos) -> None:
    verdict = sends.run(chaos, messages=120, processes=2)
    counts = verdict.counts
    assert (counts.lost, counts.doubled, counts.unexpected) == (0, 0, 0), verdict.failures
    assert verdict.measured["refused"] == 0


def test_every_break_fits_the_engine(database_url: str) -> None:
    environment = {
        **os.environ,
        "CHRONOS_DATABASE_URL": database_url,
        "CHRONOS_ACTORS": "chaos.breaks,chaos.actors",
        "CHAOS_BREAK": ",".join(BREAKS),
        "CHAOS_RUNNER": str(os.getpid()),
        "CHAOS_QUEUE": "broadcast",
    }
    subprocess.run(
        [sys.executable, "-c", "import chronos.actors, os; os._exit(0)"], env=environment, cwd=ROOT, check=True
    )
    with psycopg.connect(database_url, autocommit=True) as connection:
        break_database(connection, "limit")


def test_a_task_is_done_lost_unknown_or_unexpected() -> None:
    rows = [
        Row("done", "intent", "completed", "sent"),
        Row("twice", "intent", "completed", "sent"),
        Row("stuck", "intent", "in_progress", "intent"),
        Row("never made", "plain", "completed", None),
        Row("unknown", "intent", "unknown", "unknown"),
        Row("unknown in one table only", "intent", "unknown", "sent"),
        Row("failed", "transaction", "failed", None),
    ]
    made = {"done": 1, "twice": 2, "stuck": 1, "unknown": 1, "failed": 0, "nobody asked": 1}
    counts, remarks = compare([row.key for row in rows] + ["no row"], rows, made)
    assert counts == Counts(lost=3, doubled=1, unexpected=3, unknown=1)
    assert remarks[-1] == "and 2 more"


def test_the_fullest_second_is_found_wherever_it_lies() -> None:
    assert most_in_a_second([]) == 0
    assert most_in_a_second([0.0, 1.0, 2.0]) == 1
    assert most_in_a_second([0.9, 0.0, 1.2, 1.8]) == 3
