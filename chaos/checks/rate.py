"""A rate is kept over all processes: 50 starts per second, no second with more than 51, and 49 on average.

The queue post with a backlog for 20 s on 3 processes. Starts are those of the rows (started_at). The judge's own log
of when effects began is held against it: it may have the jitter of a loaded machine, and no more than a tenth.

Seen failing with BREAK=limit: 64.6/s on average, 75 starts in one second.
"""

from __future__ import annotations

from chaos.effects import most_in_a_second
from chaos.harness import Chaos
from chaos.verdicts import Verdict
from chronos.queues import policy_of

QUEUE = "post"
#: Part of the rate that must be used, on average.
LEAST_USED = 0.98
#: The judge sees starts with the jitter of threads, HTTP and a loaded machine.
JITTER = 0.1


def run(chaos: Chaos, seconds: float = 20.0, processes: int = 3, threads: int = 8) -> Verdict:
    verdict = Verdict("rate")
    rate = policy_of(QUEUE).rate
    assert rate is not None
    with chaos.stage(verdict, threads=threads, queue=QUEUE) as stage:
        stage.start(processes)
        stage.submit(int(rate * seconds) + 1, seconds=0.01, kind="plain")
        stage.wait_until_final(seconds * 2 + 10)
        stage.judge()
        started = sorted(
            row[0] for row in stage.sql("select extract(epoch from started_at)::float from tasks") if row[0]
        )
        seen = sorted(effect.began for effect in stage.effects.log())
        average = (len(started) - 1) / max(1e-9, started[-1] - started[0]) if len(started) > 1 else 0.0
        most, most_seen = most_in_a_second(started), most_in_a_second(seen)
        by_worker = stage.sql("select count(distinct worker) from tasks")[0][0]
        verdict.figures += [
            f"{average:.2f}/s of {rate:g} on average",
            f"at most {most} in a second ({most_seen} at the judge)",
            f"{by_worker} of {processes} processes took part",
        ]
        verdict.measured.update(average=average, most=most, most_seen=most_seen)
        verdict.require(
            average >= rate * LEAST_USED,
            f"{average:.2f} starts per second, at least {rate * LEAST_USED:g} are wanted",
        )
        verdict.require(
            most <= rate + 1, f"{most} starts in one second by started_at, at most {rate + 1:g} are allowed"
        )
        verdict.require(
            most_seen <= rate * (1 + JITTER),
            f"{most_seen} effects began in one second at the judge: more than jitter explains",
        )
    return verdict
