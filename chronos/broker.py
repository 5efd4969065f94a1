"""The broker of Chronos and THE order of its middleware, each line with its reason."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import dramatiq
from dramatiq.broker import Broker, Consumer
from dramatiq.message import Message
from dramatiq.middleware import AsyncIO, TimeLimit
from periodiq import PeriodiqMiddleware

from chronos.errors import BadInput
from chronos.middleware.claim import ClaimTasks
from chronos.middleware.consumer import ClaimingConsumer
from chronos.middleware.dead_letters import BuryDeadLetters
from chronos.middleware.lifecycle import RunWorker
from chronos.middleware.logs import LogRuns
from chronos.middleware.outcomes import WriteOutcomes
from chronos.middleware.rate_limits import LimitQueues
from chronos.middleware.telegram import CloseBot
from chronos.queues import policy_of
from chronos.runtime import Runtime, runtime


class ChronosBroker(Broker):
    """Consumes by claims. Messages are published by the engine alone; periodiq's ticks are the exception."""

    def __init__(self, the_runtime: Runtime) -> None:
        self.runtime = the_runtime
        self.limits = LimitQueues(the_runtime)
        # before_* hooks run down this list, after_* hooks run up.
        super().__init__(
            middleware=[
                # First: a database that is not migrated ends the process before any thread exists that would keep it;
                # at the other end of a life, what the others still wanted to write has been handed over by then.
                RunWorker(the_runtime),
                # The one event loop of the process, for actors that are coroutines.
                AsyncIO(),
                # On the way up: before the event loop ends.
                CloseBot(),
                # Below the boot: it writes to a database that is known to be migrated.
                self.limits,
                # On the way up: after the outcome is known, above the logs, for Dramatiq nacks what it marks.
                BuryDeadLetters(),
                # On the way up: after the outcome is known.
                LogRuns(the_runtime),
                # On the way up: the outcome is decided before anybody looks at it.
                WriteOutcomes(the_runtime),
                # Ticks that are late are no ticks.
                PeriodiqMiddleware(skip_delay=30),
                # Below all that must see a skipped message given back.
                ClaimTasks(the_runtime),
                # Last: its clock starts last and stops first, never inside our own hooks.
                TimeLimit(time_limit=600_000),
            ]
        )
        self.queues: set[str] = set()

    def declare_queue(self, queue_name: str) -> None:
        if queue_name not in self.queues:
            policy_of(queue_name)
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)
            # No delay queue: a delay is a row's run_at, never the memory of a worker.

    def get_declared_queues(self) -> set[str]:
        return set(self.queues)

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        return ClaimingConsumer(self.runtime, self, self.limits, queue_name, timeout)

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        actor = self.get_actor(message.actor_name)
        if actor.options.get("periodic") is None:
            raise BadInput(
                f"{message.actor_name}.send() goes past the engine: the task would have no row and could be lost."
                f" Use {message.actor_name}.submit(...) or chronos.runtime.runtime().submit(...)"
            )
        if self.runtime.amqp_url is None:
            raise BadInput("periodiq needs RabbitMQ: set CHRONOS_AMQP_URL (`chronos up` gives its ticks by itself)")
        publisher = self.runtime.transport.publisher()
        try:
            publisher.send(message.queue_name, message.encode())
        finally:
            publisher.close()
        return message


@lru_cache(maxsize=1)
def broker() -> ChronosBroker:
    """The broker of this process, set as Dramatiq's own before any actor is declared."""
    the_broker = ChronosBroker(runtime())
    dramatiq.set_broker(the_broker)
    return the_broker
