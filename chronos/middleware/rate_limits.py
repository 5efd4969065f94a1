"""Rate and concurrency limits per queue and per actor, global over all worker processes, by PostgreSQL's clock."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

from dramatiq.middleware import Middleware

from chronos.engine import limits, tasks
from chronos.engine.tasks import Completion, LimitedClaim, Refusal
from chronos.queues import POLICIES
from chronos.runtime import Runtime

#: Slots of a rate are reserved so far ahead, in seconds, or three times what a claim takes: a process that asks again
#: only when its slot has come would be late by a round trip each time.
HORIZON = 0.05
#: Seconds between two questions of a process whose messages a limit refuses.
SOONEST, LATEST = 0.005, 0.9


class LimitQueues(Middleware):
    """The grant that every claim asks for. Queues without limits take no lock."""

    actor_options = {"rate", "concurrency"}

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._limited: set[str] = set()
        self._claim_seconds = 0.01

    def before_worker_boot(self, broker: Any, worker: Any) -> None:
        declared = declared_limits(broker)
        unlimited = [f"queue:{name}" for name, policy in POLICIES.items() if not policy.limited]
        unlimited += [f"actor:{name}" for name in broker.actors]
        keys = {limit["key"] for limit in declared}

        def write() -> None:
            with self.runtime.loops.transaction() as connection:
                limits.store(connection, declared, [key for key in unlimited if key not in keys])

        self.runtime.loops.persist(write)
        self._limited = {str(limit["queue"]) for limit in declared}

    def apply_to(self, queue: str) -> bool:
        return queue in self._limited

    def claim(
        self,
        queue: str,
        ids: Sequence[uuid.UUID],
        worker: uuid.UUID,
        token: uuid.UUID,
        ended: Sequence[Completion] = (),
    ) -> LimitedClaim:
        """Complete what `ended` and claim what may start now. `refused` is pending and due, only a limit says no."""
        if not self.apply_to(queue):
            with self.runtime.loops.statement() as connection:
                claimed = tasks.claim(connection, queue, ids, worker, token)
            if claimed or not self._limited_by_another(queue):
                return LimitedClaim(claimed, {})
        horizon = max(HORIZON, 3 * self._claim_seconds)
        started = time.monotonic()
        with self.runtime.loops.statement() as connection:
            answer = tasks.claim_limited(connection, queue, ids, worker, token, horizon, ended)
        self._claim_seconds += (time.monotonic() - started - self._claim_seconds) * 0.1
        return answer

    def ask_again(self, run_seconds: float, refusal: Refusal) -> float:
        """Seconds until a refused task should ask again, unless a run of this process ends before."""
        wait = max(SOONEST, refusal.next_slot - HORIZON / 2)
        if refusal.full:
            # A place becomes free when somebody's run ends: the longer they take, the less a look costs to miss.
            wait = max(wait, min(LATEST, max(2 * SOONEST, run_seconds / 4)))
        return wait

    def _limited_by_another(self, queue: str) -> bool:
        """A worker with newer code may have limited a queue that has no limit here (rolling deploy)."""
        with self.runtime.loops.statement() as connection:
            if limits.exist(connection, queue):
                self._limited.add(queue)
        return queue in self._limited


def declared_limits(broker: Any) -> list[dict[str, object]]:
    """The limits of the policies and of the actors that narrow them, as rows."""
    found = [
        (f"queue:{policy.name}", policy.name, None, policy.rate, policy.concurrency) for policy in POLICIES.values()
    ]
    found += [
        (f"actor:{actor.actor_name}", actor.queue_name, actor.actor_name, actor.options.get("rate"),
         actor.options.get("concurrency"))
        for actor in broker.actors.values()
    ]  # fmt: skip
    return [
        {
            "key": key,
            "queue": queue,
            "task_name": name,
            "step": 1 / rate if rate else None,
            "max_running": concurrency,
        }
        for key, queue, name, rate, concurrency in found
        if rate or concurrency
    ]
