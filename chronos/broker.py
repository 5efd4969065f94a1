"""The broker of Chronos and THE order of its middleware, each line with its reason."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import dramatiq
from dramatiq.broker import Broker, Consumer
from dramatiq.message import Message
from dramatiq.middleware import AsyncIO, Middleware, TimeLimit
from periodiq import PeriodiqMiddleware

from chronos.engine.transports import declare
from chronos.errors import BadInput
from chronos.middleware.claim import ClaimingConsumer
from chronos.middleware.lifecycle import RunWorker
from chronos.middleware.outcomes import WriteOutcomes
from chronos.queues import policy_of
from chronos.runtime import Runtime, runtime


class TaskOptions(Middleware):
    """Declares our actor options, so that a misspelt one is an error."""

    actor_options = {"params", "concurrency", "rate", "on_requeued"}


def middleware(the_runtime: Runtime) -> list[Middleware]:
    """before_* hooks run down this list, after_* hooks run up."""
    return [
        TaskOptions(),  # first, so that every later one may read the options
        AsyncIO(),  # the one event loop exists before any loop of ours could need it, and ends after them
        RunWorker(the_runtime),  # boots the loops; knows which thread runs what until the outcome is decided
        WriteOutcomes(
            the_runtime
        ),  # below RunWorker: on the way up the outcome is written before the thread is free
        PeriodiqMiddleware(skip_delay=30),  # ticks that are late are no ticks
        TimeLimit(
            time_limit=600_000
        ),  # last: its clock starts last and stops first, never inside our own hooks
    ]


class ChronosBroker(Broker):
    """Consumes by claims. Messages are published by the engine alone; periodiq's ticks are the exception."""

    def __init__(self, the_runtime: Runtime) -> None:
        self.runtime = the_runtime
        self._ticks: Any = None
        super().__init__(middleware=middleware(the_runtime))
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
        return ClaimingConsumer(self.runtime, self, queue_name, timeout)

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        actor = self.get_actor(message.actor_name)
        if actor.options.get("periodic") is None:
            raise BadInput(
                f"{message.actor_name}.send() goes past the engine: the task would have no row and could be lost."
                f" Use {message.actor_name}.submit(...) or chronos.runtime.runtime().submit(...)"
            )
        publisher = self.runtime.publisher()
        try:
            if hasattr(publisher, "_open"):
                channel = publisher._open()
                declare(channel, message.queue_name)
                channel.basic_publish("", message.queue_name, message.encode())
            else:
                self.runtime.store.publish(message.queue_name, message.encode())
        finally:
            publisher.close()
        return message


@lru_cache(maxsize=1)
def broker() -> ChronosBroker:
    """The broker of this process, set as Dramatiq's own before any actor is declared."""
    the_broker = ChronosBroker(runtime())
    dramatiq.set_broker(the_broker)
    return the_broker
