"""Workers are killed while they work: nothing is lost, nothing is doubled, what nobody can know is reported.

2,000 tasks of 20 ms on 3 processes, one of them killed every 2 s and started again, lease 2 s. Each task works for 5
ms, makes an effect of 10 ms through ctx.intent() and works for 5 ms more, so a kill meets it before, inside and after
its effect. What was inside may end as unknown: at most kills x threads.

Seen failing with BREAK=reaper (51 lost: in_progress for ever), BREAK=intent (7 doubled) and BREAK=lease (workers that
live are taken for dead: three ended by themselves).
"""

from __future__ import annotations

import time

from chaos.harness import Chaos
from chaos.verdicts import Verdict

#: Seconds.
DEADLINE = 120.0


def run(chaos: Chaos, tasks: int = 2000, processes: int = 3, threads: int = 2, kill_every: float = 2.0) -> Verdict:
    verdict = Verdict("kills")
    with chaos.stage(verdict, threads=threads) as stage:
        stage.start(processes)
        began = time.monotonic()
        stage.submit(tasks, before=0.005, seconds=0.010, after=0.005)
        stage.kill_until_final(DEADLINE, every=kill_every, randomness=chaos.randomness("kills"))
        took = time.monotonic() - began
        stage.judge()
        allowed = stage.kills * threads
        unknown = verdict.counts.unknown
        verdict.figures += [
            f"{tasks:,} tasks in {took:.1f} s, {stage.kills} kills x {threads} threads",
            f"{unknown} reported as unknown, at most {allowed} allowed",
        ]
        verdict.measured.update(kills=stage.kills, unknown=unknown, seconds=took)
        verdict.require(stage.kills > 0, "all was done before the first kill: nothing is shown")
        verdict.require(unknown <= allowed, f"{unknown} unknown, at most {allowed} are allowed")
    return verdict
