"""`make bench ONLY=engine`: raw stock Dramatiq and Chronos with full state, interleaved, one JSON line at the end.

From a loaded backlog: the clock runs from the first counted task to the last (Chronos: to the last row completed).
Latency: one task at a time, idle workers, from before the submit to inside the actor.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sqlalchemy import text

from chronos.config import Settings
from chronos.engine import schema
from chronos.engine.tasks import NewTask
from chronos.runtime import Runtime
from private_services import PrivatePostgres, PrivateRabbitMQ

TASKS = int(os.environ.get("BENCH_TASKS", "50000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
LATENCIES = int(os.environ.get("BENCH_LATENCIES", "200"))
PROCESSES, THREADS = 2, 8
SLOTS = 512


class Counter:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.reset()

    def reset(self) -> None:
        self.path.write_bytes(bytes(16 * SLOTS))

    def read(self) -> tuple[int, float]:
        data = self.path.read_bytes()
        found = [pair for pair in struct.iter_unpack("Qd", data) if pair[0]]
        return sum(n for n, _ in found), max((t for _, t in found), default=0.0)


def workers(module: str, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "dramatiq", module, "-p", str(PROCESSES), "-t", str(THREADS)],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def drained(counter: Counter, seconds: float = 240) -> float:
    """Seconds from the first counted task to the last."""
    ends = time.monotonic() + seconds
    first = None
    while time.monotonic() < ends:
        count, last = counter.read()
        if first is None and count:
            first = (time.time(), count)
        if count >= TASKS and first is not None:
            return (last - first[0]) * TASKS / (TASKS - first[1])
        time.sleep(0.01)
    raise SystemExit(f"bench: only {counter.read()[0]} of {TASKS} tasks ran")


def latency(counter: Counter, send: Any) -> list[float]:
    found = []
    for _ in range(LATENCIES):
        before, _ = counter.read()
        started = time.time()
        send()
        while True:
            count, last = counter.read()
            if count > before:
                break
        found.append((last - started) * 1000)
        time.sleep(0.01)
    return sorted(found)


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="chronos-bench-"))
    counter = Counter(folder / "counter")
    with PrivatePostgres(folder / "postgres") as postgres, PrivateRabbitMQ(folder / "rabbitmq") as rabbitmq:
        environment = {
            **os.environ,
            "BENCH_COUNTER": str(counter.path),
            "BENCH_AMQP_URL": rabbitmq.url,
            "CHRONOS_DATABASE_URL": postgres.url,
            "CHRONOS_AMQP_URL": rabbitmq.url,
            "CHRONOS_ACTORS": "bench.engine",
        }
        os.environ.update(environment)
        runtime = Runtime(Settings())
        schema.upgrade(runtime.database)
        import bench.raw

        rates: dict[str, list[float]] = {"raw": [], "engine": []}
        accepted = []
        for _ in range(ROUNDS):
            counter.reset()
            for _ in range(TASKS):
                bench.raw.noop.send()
            process = workers("bench.raw", environment)
            rates["raw"].append(TASKS / drained(counter))
            end(process)

            counter.reset()
            started = time.perf_counter()
            for start in range(0, TASKS, 1000):
                runtime.submit(
                    *[NewTask("broadcast", "noop", user_id=i % 100) for i in range(min(1000, TASKS - start))]
                )
            accepted.append(TASKS / (time.perf_counter() - started))
            process = workers("chronos.actors", environment)
            rates["engine"].append(TASKS / drained(counter))
            _all_completed(runtime)
            end(process)
            print({name: [round(rate) for rate in found] for name, found in rates.items()}, flush=True)

        found = {}
        for name, module, send in (
            ("raw", "bench.raw", bench.raw.noop.send),
            ("engine", "chronos.actors", lambda: runtime.submit(NewTask("broadcast", "noop", user_id=1))),
        ):
            counter.reset()
            process = workers(module, environment)
            time.sleep(4)
            found[name] = latency(counter, send)
            end(process)
        bench.raw.broker.close()
        runtime.database.close()
    middle = {name: statistics.median(values) for name, values in rates.items()}
    p50 = {name: values[len(values) // 2] for name, values in found.items()}
    p99 = {name: values[int(len(values) * 0.99)] for name, values in found.items()}
    print(f"{'':8} {'tasks/s':>9} {'p50 ms':>8} {'p99 ms':>8}")
    for name in rates:
        print(f"{name:8} {middle[name]:9,.0f} {p50[name]:8.2f} {p99[name]:8.2f}")
    print(
        json.dumps(
            {
                "engine_vs_raw": round(middle["engine"] / middle["raw"], 3),
                "latency_p50_vs_raw": round(p50["engine"] / p50["raw"], 2),
                "latency_p99_ms": round(p99["engine"], 2),
                "bulk_accept_per_s": round(statistics.median(accepted)),
                "tasks": TASKS,
                "rounds": ROUNDS,
            }
        )
    )


def _all_completed(runtime: Runtime) -> None:
    """The figure counts only if every row says completed."""
    ends = time.monotonic() + 30
    while True:
        with runtime.database.statement() as connection:
            left = connection.execute(
                text("select count(*) from tasks where queue = 'broadcast' and status <> 'completed'")
            ).scalar_one()
        if left == 0:
            return
        if time.monotonic() > ends:
            raise SystemExit(f"bench: {left} tasks are not completed")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
