"""`make bench`: Chronos against named peers, interleaved in one run; a table and one JSON line at the end.

From a loaded backlog: the clock runs from the first task's first line to the end of the last one (Chronos: until its
row is completed). Latency: one task at a time on idle workers, from the call that submits it to the actor's first line.
BENCH_TASKS, BENCH_ROUNDS and BENCH_LATENCIES make a run smaller.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from bench.big_table import big_table
from bench.systems import Engine, Raw, Stage, System

TASKS = int(os.environ.get("BENCH_TASKS", "50000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
LATENCIES = int(os.environ.get("BENCH_LATENCIES", "200"))


def engine() -> None:
    """Chronos with full state against raw Dramatiq without any."""
    with tempfile.TemporaryDirectory(prefix="chronos-bench-") as folder, Stage(Path(folder)) as stage:
        systems: list[System] = [Raw(stage), Engine(stage)]
        rates: dict[str, list[float]] = {system.name: [] for system in systems}
        cpu: dict[str, list[float]] = {system.name: [] for system in systems}
        accepted: dict[str, list[float]] = {system.name: [] for system in systems}
        waits: dict[str, list[float]] = {system.name: [] for system in systems}
        for number in range(ROUNDS):
            for system in systems:
                round_ = system.drain(TASKS)
                rates[system.name].append(TASKS / round_.seconds)
                cpu[system.name].append(round_.cpu_seconds * 10_000 / TASKS)
                accepted[system.name].append(TASKS / round_.submit_seconds)
                waits[system.name] += system.latencies(max(1, LATENCIES // ROUNDS))
                print(
                    f"round {number + 1}  {system.name:8} {TASKS / round_.seconds:8,.0f} tasks/s"
                    f"  {cpu[system.name][-1]:6.2f} CPU s per 10,000 ({round_.cpu_words})",
                    flush=True,
                )
        for system in systems:
            system.close()
    names = [system.name for system in systems]
    rate = {name: statistics.median(rates[name]) for name in names}
    p50 = {name: statistics.median(waits[name]) * 1000 for name in names}
    p99 = {name: sorted(waits[name])[int(len(waits[name]) * 0.99)] * 1000 for name in names}
    print(f"\n{'':8} {'tasks/s':>9} {'p50 ms':>8} {'p99 ms':>8} {'CPU s/10k':>10} {'accepted/s':>11}  promises")
    for system in systems:
        n = system.name
        print(
            f"{n:8} {rate[n]:9,.0f} {p50[n]:8.2f} {p99[n]:8.2f} {statistics.median(cpu[n]):10.2f}"
            f" {statistics.median(accepted[n]):11,.0f}  {system.promises}"
        )
    _json(
        engine_vs_raw=round(rate["chronos"] / rate["raw"], 3),
        latency_p50_vs_raw=round(p50["chronos"] / p50["raw"], 2),
        latency_p99_ms=round(p99["chronos"], 2),
        bulk_accept_per_s=round(statistics.median(accepted["chronos"])),
        cpu_s_per_10k=round(statistics.median(cpu["chronos"]), 2),
        tasks=TASKS,
        rounds=ROUNDS,
    )


def table() -> None:
    """The cost of claim, relay, finish and reaper on an empty table and behind millions of finished rows."""
    rows = int(os.environ.get("BENCH_ROWS", "5000000"))
    with tempfile.TemporaryDirectory(prefix="chronos-bench-") as folder:
        _json(**big_table(Path(folder), rows))


def _json(**figures: object) -> None:
    print(json.dumps(figures))


CHOICES = {"engine": engine, "table": table}


def main(wanted: str | None) -> None:
    if wanted is not None and wanted not in CHOICES:
        sys.exit(f"bench: there is no {wanted!r}; choose one of {', '.join(CHOICES)}")
    for name, measure in CHOICES.items():
        if wanted in (None, name):
            print(f"-- {name}: {measure.__doc__}", flush=True)
            measure()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
