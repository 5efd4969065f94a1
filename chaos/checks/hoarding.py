"""A process takes no more than its threads can start: a second one that comes later finds work.

160 tasks of 0.5 s wait. The first of 2 processes with 8 threads each is started, the second one a second after it.
Ideal: whoever is there always has work, so 8 threads lack the first second: (160 x 0.5 s + 8 x 1 s) / 16 = 5.5 s from
the beginning of the first effect to the end of the last. Allowed is 1.2 x that. The figure says how much later the
second process really came (it may boot quicker or slower than the first); the ideal stays.

Seen failing with BREAK=hoard: 10.15 s, the first process ran all 160.
"""

from __future__ import annotations

import time

from chaos.harness import Chaos
from chaos.verdicts import Verdict

TASKS, THREADS = 160, 8
#: Seconds.
TASK, LATER = 0.5, 1.0
DEADLINE = 60.0
ALLOWED = 1.2


def run(chaos: Chaos) -> Verdict:
    verdict = Verdict("hoarding")
    with chaos.stage(verdict, threads=THREADS) as stage:
        stage.submit(TASKS, seconds=TASK, kind="plain")
        first = stage.spawn()
        time.sleep(LATER)
        second = stage.spawn()
        for worker in (first, second):
            stage.wait_until_ready(worker)
        stage.wait_until_final(DEADLINE)
        stage.judge()
        log = stage.effects.log()
        verdict.require(len(log) == TASKS, f"{len(log)} effects of {TASKS}")
        took = max(effect.ended for effect in log) - min(effect.began for effect in log)
        ideal = (TASKS * TASK + THREADS * LATER) / (2 * THREADS)
        [(later,)] = stage.sql("select extract(epoch from max(booted_at) - min(booted_at))::float from workers")
        shares = [sum(1 for effect in log if effect.worker == pid) for pid in sorted({e.worker for e in log})]
        verdict.figures.append(
            f"{took:.2f} s, {took / ideal:.2f} x the ideal {ideal:.2f} s"
            f" (the second came {later:.2f} s later; {' + '.join(map(str, shares))} tasks)"
        )
        verdict.measured.update(seconds=took, ideal=ideal)
        verdict.require(took <= ideal * ALLOWED, f"{took:.2f} s, at most {ideal * ALLOWED:.2f} s are allowed")
    return verdict
