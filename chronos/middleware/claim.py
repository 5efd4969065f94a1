"""Claim-idempotency: nothing runs that this process has not claimed, and nothing that it claimed is forgotten."""

from __future__ import annotations

from typing import Any

import structlog
from dramatiq.broker import MessageProxy
from dramatiq.message import Message
from dramatiq.middleware import Middleware, SkipMessage

from chronos.engine.tasks import Claimed
from chronos.runtime import Runtime

log = structlog.get_logger("chronos.claim")


class ClaimedMessage(MessageProxy):
    """A run on its way to a thread; Dramatiq calls the actor with the run as its only argument."""

    def __init__(self, message: Message[Any], run: Claimed) -> None:
        super().__init__(message)
        self.run = run
        #: What it came to, once a thread has run it: completed, retry, failed, ...
        self.outcome = ""
        self.started = 0.0  #: time.monotonic()
        self.seconds = 0.0
        # Set here, so that Dramatiq's many reads do not go through MessageProxy.__getattr__.
        self.actor_name, self.queue_name, self.message_id = (
            message.actor_name, message.queue_name, message.message_id,
        )  # fmt: skip
        self.args = (run,)
        self.kwargs: dict[str, Any] = {}
        self.options: dict[str, Any] = {}


class TickMessage(MessageProxy):
    """A periodiq tick: no task, so nothing to claim; its actor may only submit."""


class ClaimTasks(Middleware):
    """The guard in front of every run. The claim itself is the consumer's (consumer.py): many messages at once."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def before_process_message(self, broker: Any, message: Any) -> None:
        if isinstance(message, TickMessage):
            return
        # Only a MiddlewareError keeps Dramatiq from running the actor; SkipMessage is one.
        if not isinstance(message, ClaimedMessage):
            log.error("a message that nobody claimed is not run", message=str(message))
            raise SkipMessage("a message that nobody claimed")
        if self.runtime.held.stopping:
            raise SkipMessage("the worker stops")
        beat = self.runtime.beat
        if beat is not None and beat.stale:
            beat.wait_until_fresh()

    def after_skip_message(self, broker: Any, message: Any) -> None:
        # SkipMessage acks: what was claimed must be given back here, or it would wait for the beat's audit.
        if isinstance(message, ClaimedMessage):
            self.runtime.hand_back(message.run, "its worker stopped before it started")
