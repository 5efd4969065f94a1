"""One stage per experiment: an empty database, empty queues, a judge, and worker processes to be killed.

A worker is a real `dramatiq chronos.actors`: one master with one process, in a process group that is killed as one.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pika
import psycopg
from dramatiq.common import xq_name
from sqlalchemy import text

from chaos.breaks import break_database
from chaos.effects import EffectServer, times_made
from chaos.latency import Network
from chaos.verdicts import Row, Verdict, compare
from chronos.config import Settings
from chronos.engine import schema
from chronos.models.new_task import NewTask
from chronos.queues import POLICIES
from chronos.runtime import Runtime
from private_services import PrivatePostgres, PrivateRabbitMQ

ROOT = Path(__file__).resolve().parent.parent

#: Seconds.
LEASE = 2.0
BOOT_DEADLINE = 60.0
#: Seconds without one more final task after which the rest counts as lost: several leases and every backoff.
STALL = 20.0
BATCH = 1000


class HarnessError(Exception):
    """The experiment could not be made, which says nothing about the engine."""


@dataclass
class Chaos:
    """Servers and settings that all checks of a run share."""

    postgres: PrivatePostgres
    rabbitmq: PrivateRabbitMQ
    folder: Path
    seed: int
    amqp_url: str = ""  #: a virtual host of its own, where the node is shared
    latency_ms: float = 0.0
    break_: str = ""

    def __post_init__(self) -> None:
        self.amqp_url = self.amqp_url or self.rabbitmq.url
        self.network = Network(self.latency_ms)

    def randomness(self, check: str) -> random.Random:
        """The same for the same seed, whichever other checks run."""
        return random.Random(f"{self.seed} {check}")

    def say(self, line: str) -> None:
        print(f"  {line}", flush=True)

    @contextmanager
    def stage(
        self,
        verdict: Verdict,
        *,
        threads: int,
        queue: str = "broadcast",
        concurrency: int = 0,
        environment: dict[str, str] | None = None,
    ) -> Iterator[Stage]:
        name = f"chaos_{uuid.uuid4().hex}"
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            connection.execute(f"create database {name}")
        _delete_queues(self.amqp_url)
        url = self.postgres.url.rsplit("/", 1)[0] + "/" + name
        folder = self.folder / f"{verdict.name}-{name[-6:]}"
        folder.mkdir(parents=True)
        stage = Stage(
            self,
            verdict,
            database_url=url,
            folder=folder,
            threads=threads,
            queue=queue,
            concurrency=concurrency,
            environment=environment or {},
        )
        try:
            schema.upgrade(stage.runtime.database)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("create table effects (key text not null)")
                break_database(connection, self.break_)
            yield stage
        finally:
            stage.close()
            with psycopg.connect(self.postgres.url, autocommit=True) as connection:
                connection.execute(f"drop database {name} with (force)")

    def round_trip_ms(self) -> float:
        """How long PostgreSQL's answer to a worker takes at best, the network included."""
        with psycopg.connect(self.network.through(self.postgres.url), autocommit=True) as connection:
            times = []
            for _ in range(20):
                began = time.perf_counter()
                connection.execute("select 1")
                times.append(time.perf_counter() - began)
        return min(times) * 1000

    def close(self) -> None:
        self.network.close()


def _delete_queues(amqp_url: str) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    try:
        channel = connection.channel()
        for queue in POLICIES:
            channel.queue_delete(queue)
            channel.queue_delete(xq_name(queue))
    finally:
        connection.close()


@dataclass
class Worker:
    name: str
    process: subprocess.Popen[bytes]
    log: Path
    ended: bool = False  #: by us, or found dead and reported

    def signal(self, number: signal.Signals) -> None:
        os.killpg(self.process.pid, number)


class Stage:
    def __init__(
        self,
        chaos: Chaos,
        verdict: Verdict,
        *,
        database_url: str,
        folder: Path,
        threads: int,
        queue: str,
        concurrency: int,
        environment: dict[str, str],
    ) -> None:
        self.chaos, self.verdict, self.folder = chaos, verdict, folder
        self.threads, self.queue = threads, queue
        self.effects = EffectServer()
        self.accepted: list[str] = []
        self.workers: list[Worker] = []
        self.kills = 0
        # The front door has the servers beside it: only the workers are behind the network.
        self.runtime = Runtime(Settings(database_url=database_url, amqp_url=chaos.amqp_url, lease_seconds=LEASE))
        self.environment = {
            **os.environ,
            "CHRONOS_DATABASE_URL": chaos.network.through(database_url),
            "CHRONOS_AMQP_URL": chaos.network.through(chaos.amqp_url),
            "CHRONOS_LEASE_SECONDS": str(LEASE),
            "CHRONOS_ACTORS": "chaos.breaks,chaos.actors",
            "CHAOS_BREAK": chaos.break_,
            "CHAOS_RUNNER": str(os.getpid()),
            "CHAOS_QUEUE": queue,
            "CHAOS_CONCURRENCY": str(concurrency),
            "PYTHONPATH": str(ROOT),
            **environment,
        }

    # -- the front door

    def submit(self, count: int, *, kind: str = "intent", **work: float) -> None:
        """Accept so many tasks with the given work each."""
        first = len(self.accepted)
        keys = [str(first + number) for number in range(count)]
        server = self.effects.url.removeprefix("http://")
        for start in range(0, count, BATCH):
            batch = keys[start : start + BATCH]
            self.runtime.submit(
                *[NewTask(self.queue, "work", {"server": server, "key": key, "kind": kind, **work}) for key in batch]
            )
        self.accepted += keys

    def sql(self, statement: str, **values: Any) -> list[Any]:
        with self.runtime.database.statement() as connection:
            return list(connection.execute(text(statement), values).all())

    def left(self) -> int:
        """Accepted tasks that are not final."""
        return int(self.sql("select count(*) from tasks where status in ('pending', 'in_progress')").pop()[0])

    # -- workers

    def start(self, count: int) -> list[Worker]:
        started = [self.spawn() for _ in range(count)]
        for worker in started:
            self.wait_until_ready(worker)
        return started

    def spawn(self) -> Worker:
        """Start a worker without waiting for it."""
        name = f"worker-{len(self.workers) + 1}"
        path = self.folder / f"{name}.log"
        with path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dramatiq", "chronos.actors", "-p", "1", "-t", str(self.threads)],
                env={**self.environment, "CHRONOS_WORKER_NAME": name},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        worker = Worker(name, process, path)
        self.workers.append(worker)
        return worker

    def wait_until_ready(self, worker: Worker) -> None:
        ends = time.monotonic() + BOOT_DEADLINE
        while worker not in self.ready():
            if worker.process.poll() is not None or time.monotonic() > ends:
                said = worker.log.read_text(errors="replace")[-2000:]
                raise HarnessError(f"{worker.name} did not start; it said:\n{said}")
            time.sleep(0.02)

    def ready(self) -> list[Worker]:
        """Living workers that have begun to take work."""
        names = {row[0] for row in self.sql("select name from workers where not dead")}
        return [worker for worker in self.living() if worker.name in names]

    def running(self) -> list[Worker]:
        """Living workers that run something at this moment, as the table says."""
        statement = (
            "select distinct w.name from tasks t join workers w on w.id = t.worker where t.status = 'in_progress'"
        )
        names = {row[0] for row in self.sql(statement)}
        return [worker for worker in self.living() if worker.name in names]

    def living(self) -> list[Worker]:
        return [worker for worker in self.workers if not worker.ended and worker.process.poll() is None]

    def freeze(self, worker: Worker) -> None:
        worker.signal(signal.SIGSTOP)

    def thaw(self, worker: Worker) -> int | None:
        """Let it go on; the exit code with which it then ended itself, None: it did not."""
        worker.ended = True
        worker.signal(signal.SIGCONT)
        try:
            return worker.process.wait(10)
        except subprocess.TimeoutExpired:
            worker.ended = False
            return None

    def kill(self, worker: Worker) -> None:
        worker.ended = True
        worker.signal(signal.SIGKILL)
        worker.process.wait(10)
        self.kills += 1

    def replace_fallen(self) -> None:
        """A supervisor would start a worker again that ended by itself; here that is reported as well."""
        for worker in self.workers:
            if not worker.ended and (code := worker.process.poll()) is not None:
                worker.ended = True
                self.verdict.counts.unexpected += 1
                self.verdict.failures.append(f"{worker.name} ended by itself with {code}")
                self.spawn()

    # -- waiting

    def wait_until_final(self, seconds: float) -> bool:
        """Whether all tasks became final in time; a stall ends the wait early."""
        return self.kill_until_final(seconds, every=None)

    def kill_until_final(
        self,
        seconds: float,
        *,
        every: float | None,
        randomness: random.Random | None = None,
        only_running: bool = False,
    ) -> bool:
        """Kill a random worker `every` so many seconds and start another in its place."""
        began = last_change = told = time.monotonic()
        last_left = -1
        next_kill = began + every / 2 if every else float("inf")
        while (left := self.left()) > 0:
            now = time.monotonic()
            if left != last_left:
                last_left, last_change = left, now
            if now - began > seconds or now - last_change > STALL:
                self.chaos.say(f"{left:,} tasks left, and no hope for them: given up")
                return False
            self.replace_fallen()
            moving = now - last_change < 2 * LEASE
            if now >= next_kill and moving and randomness is not None and every is not None:
                ready = self.ready()
                victims = [worker for worker in self.running() if worker in ready] if only_running else ready
                # One survives: what is shown is recovery, not how quickly Python starts.
                if victims and len(ready) > 1:
                    victim = randomness.choice(victims)
                    self.kill(victim)
                    self.spawn()
                    # A random phase, so that kills meet the work at every point of it.
                    next_kill = now + every * randomness.uniform(0.9, 1.1)
                    self.chaos.say(f"{now - began:5.1f} s  killed {victim.name}, {left:,} tasks left")
                    told = now
            if now - told >= 5:
                self.chaos.say(f"{now - began:5.1f} s  {left:,} tasks left")
                told = now
            time.sleep(0.02 if every else 0.05)
        self.replace_fallen()
        return True

    # -- the end

    def judge(self) -> None:
        """Compare what was accepted with the tables and with the effects that were made, into the verdict."""
        rows = [
            Row(*row)
            for row in self.sql(
                "select t.params ->> 'key', t.params ->> 'kind', t.status, s.state from tasks t"
                " left join sends s on s.task_id = t.id"
            )
        ]
        made = times_made(self.effects.log())
        made.update(row[0] for row in self.sql("select key from effects"))
        counts, remarks = compare(self.accepted, rows, made)
        self.verdict.count(counts, remarks)

    def close(self) -> None:
        try:
            self.verdict.worker_pids += [row[0] for row in self.sql("select pid from workers order by booted_at")]
        finally:
            for worker in self.living():
                self.kill(worker)
                self.kills -= 1
            for worker in self.workers:
                worker.process.wait(10)
            self.effects.close()
            self.runtime.close()
