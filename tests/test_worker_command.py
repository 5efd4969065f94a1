"""`chronos worker`: real processes, killed at every level. None is left behind, and no work is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from chronos.models.new_task import NewTask
from private_services import PrivatePostgres, free_port
from tests.processes import ROOT, Workers, eventually


class Supervised:
    """One `chronos worker` with the processes below it."""

    def __init__(self, workers: Workers, **environment: str) -> None:
        self.workers = workers
        self.log = workers.folder / "supervisor.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "chronos.cli", "worker", "-p", "1", "-t", "2"],
                env={**workers.environment, **environment},
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.seen: set[psutil.Process] = set()

    def tree(self) -> list[psutil.Process]:
        """Master first, then its worker processes."""
        found = psutil.Process(self.process.pid).children(recursive=True)
        self.seen.update(found)
        return found

    def ready(self, others: int = 0) -> psutil.Process:
        """Wait for a worker process with a row of its own; the process."""
        known = [row[0] for row in self.workers.sql("select pid from workers")][:others]

        def look() -> psutil.Process | None:
            pids = {row[0] for row in self.workers.sql("select pid from workers where not dead")} - set(known)
            return next((process for process in self.tree() if process.pid in pids), None)

        found = eventually(look, what=self.said())
        assert isinstance(found, psutil.Process)
        return found

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def running(self, seconds: float = 30.0) -> None:
        """Have it run one task."""
        self.workers.runtime.submit(NewTask("broadcast", "work", {"seconds": seconds}))
        eventually(lambda: self.workers.statuses().get("in_progress") == 1, what=self.said())

    def nothing_is_left(self) -> bool:
        return all(not p.is_running() or p.status() == psutil.STATUS_ZOMBIE for p in self.seen)

    def end(self) -> None:
        if self.process.poll() is None:
            self.tree()
            self.process.kill()
            self.process.wait(10)
        for process in self.seen:
            if process.is_running():
                process.kill()


Start = Callable[..., Supervised]


@pytest.fixture
def start(embedded: Workers) -> Iterator[Start]:
    made: list[Supervised] = []

    def start(**environment: str) -> Supervised:
        made.append(Supervised(embedded, **environment))
        return made[-1]

    yield start
    for one in made:
        one.end()


@pytest.fixture
def supervised(start: Start) -> Supervised:
    return start(CHRONOS_SHUTDOWN_SECONDS="3")


def outcome(workers: Workers) -> list[tuple[str, int, int]]:
    return [tuple(row) for row in workers.sql("select status, attempt, crashes from tasks")]


def test_a_killed_worker_process_is_replaced_and_its_task_done_by_the_next(
    supervised: Supervised, embedded: Workers
) -> None:
    victim = supervised.ready()
    supervised.running(1.0)
    victim.kill()
    assert supervised.ready(others=1).pid != victim.pid
    assert embedded.all_final() == {"completed": 1}
    assert outcome(embedded) == [("completed", 2, 1)]
    assert "the worker ended (exit code 1) and is started again" in supervised.said()
    assert supervised.process.poll() is None


def test_worker_processes_end_with_a_killed_master_and_a_new_one_goes_on(
    supervised: Supervised, embedded: Workers
) -> None:
    supervised.ready()
    supervised.running(1.0)
    master, *processes = supervised.tree()
    assert processes
    master.kill()
    eventually(lambda: all(not p.is_running() or p.status() == psutil.STATUS_ZOMBIE for p in processes))
    supervised.ready(others=1)
    assert embedded.all_final() == {"completed": 1}
    assert "the worker ended (killed by signal 9) and is started again" in supervised.said()


def test_a_killed_supervisor_takes_all_with_it_and_hands_the_work_back(
    supervised: Supervised, embedded: Workers
) -> None:
    supervised.ready()
    supervised.running()
    supervised.tree()
    supervised.process.kill()
    eventually(supervised.nothing_is_left, what="the master and its processes are gone")
    assert outcome(embedded) == [("pending", 0, 0)]


def test_sigterm_lets_a_short_run_finish(supervised: Supervised, embedded: Workers) -> None:
    supervised.ready()
    supervised.running(1.0)
    supervised.process.terminate()
    assert supervised.process.wait(20) == 0, supervised.said()
    assert outcome(embedded) == [("completed", 1, 0)]
    assert supervised.nothing_is_left()


def test_sigterm_hands_a_long_run_back_when_the_grace_ends(supervised: Supervised, embedded: Workers) -> None:
    supervised.ready()
    supervised.running()
    supervised.process.terminate()
    assert supervised.process.wait(20) == 0, supervised.said()
    assert outcome(embedded) == [("pending", 0, 0)]
    assert supervised.nothing_is_left()


def test_a_second_signal_hands_back_at_once(start: Start, embedded: Workers) -> None:
    patient = start(CHRONOS_SHUTDOWN_SECONDS="600")
    patient.ready()
    patient.running(50.0)
    patient.process.send_signal(signal.SIGINT)
    patient.process.send_signal(signal.SIGTERM)
    assert patient.process.wait(30) == 0, patient.said()
    assert outcome(embedded) == [("pending", 0, 0)]


def test_the_wrong_schema_is_one_line_and_exit_2(start: Start, postgres: PrivatePostgres) -> None:
    wrong = start(CHRONOS_DATABASE_URL=postgres.url)
    assert wrong.process.wait(30) == 2
    assert wrong.said() == "chronos: the database is empty: run `chronos db upgrade`\n"


def test_what_a_worker_process_finds_wrong_ends_the_supervisor_with_exit_2(start: Start) -> None:
    """Dramatiq's master passes the code on: only the worker process imports the user's modules."""
    wrong = start(CHRONOS_ACTORS="no_such_module")
    assert wrong.process.wait(30) == 2
    assert "chronos: CHRONOS_ACTORS: cannot import no_such_module" in wrong.said()
    assert "Traceback" not in wrong.said()


def test_a_worker_that_dies_at_its_start_is_tried_again_with_growing_pauses_until_sigterm(
    start: Start, embedded: Workers, tmp_path: Path
) -> None:
    (tmp_path / "deadly.py").write_text("import os\nos._exit(9)\n")
    path = f"{embedded.environment['PYTHONPATH']}:{tmp_path}"
    failing = start(CHRONOS_ACTORS="deadly", PYTHONPATH=path)
    eventually(lambda: "started again in 0.4 s" in failing.said(), what=failing.said())
    assert "started again in 0.2 s" in failing.said()
    failing.process.terminate()
    assert failing.process.wait(10) == 0, failing.said()


def test_sigterm_is_heard_while_postgresql_is_away(start: Start) -> None:
    nowhere = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    waiting = start(CHRONOS_DATABASE_URL=nowhere, CHRONOS_SHUTDOWN_SECONDS="600")
    eventually(lambda: len(waiting.tree()) > 1, what=waiting.said())
    waiting.process.terminate()
    assert waiting.process.wait(30) == 0, waiting.said()
    assert "PostgreSQL does not answer yet" in waiting.said()
    assert waiting.nothing_is_left()
