"""The queues of Chronos and the policy of each, as data."""

from __future__ import annotations

import random
from dataclasses import dataclass

from chronos.errors import BadInput

#: How much a delay may grow at random, so that tasks that failed together do not come back together.
JITTER = 0.2


@dataclass(frozen=True)
class QueuePolicy:
    name: str
    runs: int  #: runs in total, the first one included
    backoff: float  #: seconds before the second run; doubles with each further one
    time_limit: float  #: seconds that one run may take
    rate: float | None = None  #: starts per second, over all processes
    concurrency: int | None = None  #: runs at once, over all processes
    repeat_unknown: bool = False  #: one repeat of an effect whose result a crash made unknowable

    @property
    def limited(self) -> bool:
        return self.rate is not None or self.concurrency is not None

    def delay(self, attempt: int) -> float:
        """Seconds to wait after run number `attempt` failed, jitter aside."""
        return self.backoff * float(2 ** (max(1, attempt) - 1))

    def jittered_delay(self, attempt: int) -> float:
        return self.delay(attempt) * (1 + random.random() * JITTER)


POLICIES: dict[str, QueuePolicy] = {
    policy.name: policy
    for policy in (
        QueuePolicy("report", runs=5, backoff=2, time_limit=300, concurrency=5),
        QueuePolicy("post", runs=5, backoff=3, time_limit=120, rate=50, concurrency=10),
        # A reminder that comes twice is better than one that never comes.
        QueuePolicy("schedule", runs=5, backoff=3, time_limit=60, rate=100, concurrency=20, repeat_unknown=True),
        # "One broadcast at a time" is the bot's state, not a lock that a thread holds: no concurrency here.
        QueuePolicy("broadcast", runs=5, backoff=3, time_limit=300),
        # A delivery moves up to 2 GB: three runs, ten minutes for each, and a first pause of 10 s because
        # what breaks it (a slow source, a full disk) does not heal in three. 4 at once: they share one uplink.
        QueuePolicy("delivery", runs=3, backoff=10, time_limit=600, concurrency=4),
        # A notice that comes twice is better than one that never comes.
        QueuePolicy("system", runs=3, backoff=2, time_limit=120, repeat_unknown=True),
    )
}


def policy_of(queue: str) -> QueuePolicy:
    try:
        return POLICIES[queue]
    except KeyError:
        raise BadInput(f"unknown queue {queue!r}: choose one of {', '.join(POLICIES)}") from None
