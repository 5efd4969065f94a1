"""`make chaos`: every check, or those of ONLY=name,name; a table, one JSON line, exit code 1 if any failed.

SEED=n replays a run's victims and moments (the seed is printed). LATENCY_MS=n puts a network of n ms each way between
the workers and their servers. BREAK=name,name breaks the workers on purpose (chaos/breaks.py): a check must notice.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from chaos import checks
from chaos.breaks import BREAKS
from chaos.harness import Chaos, HarnessError
from chaos.verdicts import Counts, Verdict, shortened
from private_services import PrivatePostgres, PrivateRabbitMQ, ServiceError


def _chosen(words: list[str]) -> list[str]:
    known = checks.names()
    wanted = [name for word in (words or [os.environ.get("ONLY", "")]) for name in word.split(",") if name]
    if unknown := [name for name in wanted if name not in known]:
        raise SystemExit(f"chaos: no check {', '.join(unknown)}; there are {', '.join(known)}")
    return wanted or known


def _break() -> str:
    wanted = os.environ.get("BREAK", "")
    if unknown := [name for name in wanted.split(",") if name and name not in BREAKS]:
        raise SystemExit(f"chaos: no break {', '.join(unknown)}; there are {', '.join(BREAKS)}")
    return wanted


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names, broken = _chosen(sys.argv[1:]), _break()
    seed = int(os.environ.get("SEED") or random.randrange(1_000_000))
    latency = float(os.environ.get("LATENCY_MS") or 0)
    folder = Path(tempfile.mkdtemp(prefix="chronos-chaos-"))
    print(f"seed {seed}, latency {latency:g} ms each way{', broken: ' + broken if broken else ''}", flush=True)
    verdicts = []
    try:
        with (
            PrivatePostgres(folder / "postgres") as postgres,
            PrivateRabbitMQ(folder / "rabbitmq") as rabbitmq,
        ):
            chaos = Chaos(postgres, rabbitmq, folder / "stages", seed, latency_ms=latency, break_=broken)
            address = urlsplit(rabbitmq.url)
            broker = f"{address.scheme}://{address.hostname}:{address.port}{address.path}"
            try:
                print(f"PostgreSQL answers in {chaos.round_trip_ms():.1f} ms", flush=True)
                for name in names:
                    print(f"{name}:", flush=True)
                    began = time.monotonic()
                    verdicts.append(checks.check(name)(chaos))
                    print(f"  {verdicts[-1].result} after {time.monotonic() - began:.0f} s", flush=True)
            finally:
                chaos.close()
    except (ServiceError, HarnessError) as error:
        raise SystemExit(f"chaos: {error}") from None
    _report(verdicts, seed, broker)
    passed = all(verdict.passed for verdict in verdicts)
    for part in [folder] if passed else [folder / "postgres", folder / "rabbitmq"]:
        shutil.rmtree(part, ignore_errors=True)
    if passed:
        return 0
    print(f"the workers' logs are in {folder / 'stages'}", file=sys.stderr)
    return 1


def _report(verdicts: list[Verdict], seed: int, broker: str) -> None:
    total = Counts()
    print(f"\n{'check':12} {'result':7} {'lost':>5} {'doubled':>8} {'unexpected':>11} {'unknown':>8}  figures")
    for verdict in verdicts:
        counts = verdict.counts
        total.add(counts)
        head = (
            f"{verdict.name:12} {verdict.result:7} {counts.lost:5} {counts.doubled:8}"
            f" {counts.unexpected:11} {counts.unknown:8}"
        )
        for number, figure in enumerate(verdict.figures or [""]):
            print(f"{head if number == 0 else '':{len(head)}}  {figure}")
        for failure in shortened(verdict.failures, 12):
            print(f"{'':12} {failure}")
    print(
        json.dumps(
            {
                "lost": total.lost,
                "doubled": total.doubled,
                "unexpected": total.unexpected,
                "unknown": total.unknown,
                "checks": {verdict.name: verdict.passed for verdict in verdicts},
                "seed": seed,
                "broker": broker,
                "worker_pids": [pid for verdict in verdicts for pid in verdict.worker_pids],
            }
        )
    )


if __name__ == "__main__":
    sys.exit(main())
