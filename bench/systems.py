"""The systems under measurement: each can drain a backlog and say how long one task takes on its way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import psutil
from sqlalchemy import text

from bench.marks import Counter, Ear
from chronos.config import Settings
from chronos.engine import schema
from chronos.models.new_task import NewTask
from chronos.runtime import Runtime
from private_services import PrivatePostgres, PrivateRabbitMQ

PROCESSES, THREADS = 2, 8
DEADLINE = 240.0


class Stage:
    """The servers that all systems share, and where their actors leave their marks."""

    def __init__(self, folder: Path) -> None:
        self.postgres = PrivatePostgres(folder / "postgres")
        self.rabbitmq = PrivateRabbitMQ(folder / "rabbitmq")
        self.counter = Counter(folder / "counter")
        self.ear = Ear(folder / "ear")

    def __enter__(self) -> Self:
        self.postgres.start()
        self.rabbitmq.start()
        os.environ.update(
            BENCH_COUNTER=str(self.counter.path),
            BENCH_SOCKET=str(self.ear.path),
            BENCH_AMQP_URL=self.rabbitmq.url,
            CHRONOS_DATABASE_URL=self.postgres.url,
            CHRONOS_AMQP_URL=self.rabbitmq.url,
            CHRONOS_ACTORS="bench.engine",
            CHRONOS_LOG_LEVEL="error",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ear.close()
        self.rabbitmq.stop()
        self.postgres.stop()


@dataclass(frozen=True)
class Round:
    seconds: float
    submit_seconds: float
    cpu_seconds: float
    cpu_words: str


class System(ABC):
    name: ClassVar[str]
    module: ClassVar[str]
    promises: ClassVar[str]

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    @abstractmethod
    def fill(self, tasks: int) -> None: ...

    @abstractmethod
    def send_stamp(self) -> None: ...

    @abstractmethod
    def finished_at(self, tasks: int, last_run: float) -> float:
        """When the last of them was done, by this system's own word."""

    @abstractmethod
    def close(self) -> None: ...

    def drain(self, tasks: int) -> Round:
        self.stage.counter.reset()
        started = time.perf_counter()
        self.fill(tasks)
        submit_seconds = time.perf_counter() - started
        before = _cpu(self.stage, None)
        workers = self._start()
        try:
            self._await(lambda: self.stage.counter.read()[0] > 0, "the first task")
            idle = _cpu(self.stage, workers)["workers"]
            self._await(lambda: self.stage.counter.read()[0] >= tasks, f"{tasks} tasks")
            _, first, last = self.stage.counter.read()
            done = self.finished_at(tasks, last)
            after = _cpu(self.stage, workers)
        finally:
            _end(workers)
        used = {name: after[name] - before.get(name, idle) for name in after}
        words = ", ".join(f"{name} {seconds * 1e6 / tasks:.0f} us" for name, seconds in used.items())
        return Round(done - first, submit_seconds, sum(used.values()), words)

    def latencies(self, count: int) -> list[float]:
        """Seconds from the call of the submit to the actor's first line, one at a time on idle workers."""
        workers = self._start()
        found = []
        try:
            for number in range(count + 10):
                started = time.time()
                self.send_stamp()
                heard = self.stage.ear.hear()
                if number >= 10:
                    found.append(heard - started)
                time.sleep(0.02)
        finally:
            _end(workers)
        return found

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dramatiq", self.module, "-p", str(PROCESSES), "-t", str(THREADS)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _await(self, check: Any, what: str) -> None:
        ends = time.monotonic() + DEADLINE
        while not check():
            if time.monotonic() > ends:
                raise SystemExit(f"bench: {self.name} did not get to {what} in {DEADLINE:g} s")
            time.sleep(0.02)


class Raw(System):
    name = "raw"
    module = "bench.raw"
    promises = "no state; lost with a failed publish, doubled after a crash"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        import bench.raw

        self.actors = bench.raw

    def fill(self, tasks: int) -> None:
        for _ in range(tasks):
            self.actors.noop.send()

    def send_stamp(self) -> None:
        self.actors.stamp.send()

    def finished_at(self, tasks: int, last_run: float) -> float:
        return last_run

    def close(self) -> None:
        self.actors.broker.close()


class Engine(System):
    name = "chronos"
    module = "chronos.actors"
    promises = "every task a row with its state and timeline; never lost, never run twice at once"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.runtime = Runtime(Settings())
        schema.upgrade(self.runtime.database)

    def fill(self, tasks: int) -> None:
        for start in range(0, tasks, 1000):
            self.runtime.submit(
                *[NewTask("broadcast", "noop", user_id=n % 100) for n in range(min(1000, tasks - start))]
            )

    def send_stamp(self) -> None:
        self.runtime.submit(NewTask("broadcast", "stamp", user_id=1))

    def finished_at(self, tasks: int, last_run: float) -> float:
        """The figure counts only if every row says completed."""
        self._await(lambda: self._left() == 0, "all rows completed")
        with self.runtime.database.statement() as connection:
            return float(
                connection.execute(text("select extract(epoch from max(finished_at)) from tasks")).scalar_one()
            )

    def _left(self) -> int:
        with self.runtime.database.statement() as connection:
            return int(
                connection.execute(
                    text("select count(*) from tasks where status in ('pending', 'in_progress')")
                ).scalar_one()
            )

    def close(self) -> None:
        self.runtime.close()


def _cpu(stage: Stage, workers: subprocess.Popen[bytes] | None) -> dict[str, float]:
    """CPU seconds so far, by part; processes that ended below a server included."""
    found = {"PostgreSQL": _tree(stage.postgres.pid), "RabbitMQ": _tree(stage.rabbitmq.pid)}
    if workers is not None:
        found["workers"] = _tree(workers.pid)
    return found


def _tree(pid: int) -> float:
    seconds = 0.0
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        seconds += times.user + times.system
        if process.pid == pid:
            seconds += times.children_user + times.children_system
    return seconds


def _end(workers: subprocess.Popen[bytes]) -> None:
    workers.send_signal(signal.SIGTERM)
    try:
        workers.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(workers.pid, signal.SIGKILL)
        workers.wait()
