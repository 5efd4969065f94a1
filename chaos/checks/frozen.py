"""A worker frozen for longer than its lease has lost its tasks: what it does afterwards changes nothing.

Again and again one of 2 processes is stopped (SIGSTOP) while it runs tasks, half of which make their effect through
ctx.intent() and half through ctx.transaction(); after lease + 2 s, by when the other one must have all of them final,
it is continued and must end itself. Unknown may end what was inside an intent: at most freezes x threads.

Seen failing with BREAK=lease ("went on as if nothing had happened"; what it wrote was still refused) and with
BREAK=lease,token (3 doubled; in another run 8 unknown ones were called completed by the worker that had lost them).
BREAK=token alone is not seen: a worker that notices its death ends before it writes.
"""

from __future__ import annotations

import time

from chaos.harness import LEASE, Chaos
from chaos.verdicts import Verdict

#: Seconds.
RECOVERY = LEASE + 2.0
DEADLINE = 30.0


def run(chaos: Chaos, times: int = 8, tasks: int = 60, threads: int = 4) -> Verdict:
    verdict = Verdict("frozen")
    randomness = chaos.randomness("frozen")
    slowest = 0.0
    with chaos.stage(verdict, threads=threads) as stage:
        stage.start(2)
        for number in range(times):
            stage.submit(tasks // 2, before=0.03, seconds=0.04, after=0.03)
            stage.submit(tasks // 2, kind="transaction", before=0.07, after=0.03)
            while not (running := stage.running()) and stage.left():
                time.sleep(0.005)
            time.sleep(randomness.uniform(0.0, 0.3))
            victim = randomness.choice(stage.running() or running or stage.living())
            stage.freeze(victim)
            began = time.monotonic()
            final = stage.wait_until_final(DEADLINE)
            took = time.monotonic() - began
            slowest = max(slowest, took)
            time.sleep(max(0.0, RECOVERY - took))
            code = stage.thaw(victim)
            chaos.say(f"freeze {number + 1}: {victim.name}, all final after {took:.1f} s, then it ended with {code}")
            if code is None:
                verdict.failures.append(f"{victim.name} went on as if nothing had happened")
                stage.kill(victim)
            if not final:
                break
            stage.start(1)
        stage.judge()
        unknown, allowed = verdict.counts.unknown, times * threads
        verdict.figures += [
            f"{tasks * times:,} tasks, {times} freezes, all final within {slowest:.1f} s of each",
            f"{unknown} reported as unknown, at most {allowed} allowed",
        ]
        verdict.measured.update(slowest=slowest, unknown=unknown)
        verdict.require(slowest <= RECOVERY, f"{slowest:.1f} s until all were final, at most {RECOVERY:g} are allowed")
        verdict.require(unknown <= allowed, f"{unknown} unknown, at most {allowed} are allowed")
    return verdict
