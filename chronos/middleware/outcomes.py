"""Turns how a run ended into one of a closed set of outcomes, and hands it to the finisher."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

import structlog
from dramatiq.middleware import Middleware, SkipMessage
from sqlalchemy import Connection

from chronos.engine import tasks
from chronos.engine.finisher import Ending
from chronos.engine.tasks import Claimed
from chronos.errors import Ambiguous, Cancelled, ClaimLost, Expired, HandBack, Later, PermanentError, one_line
from chronos.logs import redacted
from chronos.middleware.claim import ClaimedMessage
from chronos.queues import policy_of
from chronos.runtime import Runtime

log = structlog.get_logger("chronos.tasks")

Write = Callable[[Connection], str | None]


class WriteOutcomes(Middleware):
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def before_process_message(self, broker: Any, message: Any) -> None:
        if not isinstance(message, ClaimedMessage):
            return
        if self.runtime.held.stopping:
            raise SkipMessage("stopping")
        if self.runtime.beat is not None:
            self.runtime.beat.wait_until_fresh()
        message.run_started = time.monotonic()

    def after_skip_message(self, broker: Any, message: Any) -> None:
        # SkipMessage acks: what was claimed must be given back here, or it would wait for the audit.
        if isinstance(message, ClaimedMessage):
            self.runtime.hand_back(message.run, "its worker stopped before it started")

    def after_process_message(
        self, broker: Any, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if not isinstance(message, ClaimedMessage):
            return
        run = message.run
        seconds = time.monotonic() - message.run_started
        self.runtime.held.ran(run, seconds)
        finisher = self.runtime.finisher
        assert finisher is not None  # noqa: S101
        actor = broker.actors[message.actor_name]
        if exception is None:
            if run.committed:
                self.runtime.held.settled(run.id)
                return
            finisher.put(Ending(run, run.result))
            return
        name, write = self.decide(run, exception)
        if name != "lost":
            self._log(run, name, exception, seconds)
        hook = actor.options.get("on_requeued")

        def then(status: str | None) -> None:
            if hook is not None and status == "pending":
                hook(run, name)

        finisher.put(Ending(run, write=write, then=then))

    def decide(self, run: Claimed, error: BaseException) -> tuple[str, Write]:
        """The outcome's name and the one statement that writes it."""
        facts: dict[str, str | None] = {
            "message": one_line(error) or type(error).__name__,
            "class": type(error).__name__,
            "traceback": "".join(traceback.format_exception(error))[-8000:].replace("\x00", "\\0"),
        }
        if isinstance(error, ClaimLost):
            return "lost", lambda connection: None
        if isinstance(error, HandBack):
            return "handed back", lambda connection: tasks.hand_back(
                connection, run, one_line(error), wait=1.0
            )
        if isinstance(error, Later):
            return "later", lambda connection: tasks.later(connection, run, error.seconds, error.why)
        if isinstance(error, Cancelled) or (run.cancelled and not isinstance(error, Ambiguous)):
            return "cancelled", lambda connection: tasks.end_cancelled(
                connection, run, facts["message"] or ""
            )
        if isinstance(error, Expired):
            return "expired", lambda connection: tasks.end_expired(connection, run, facts["message"] or "")
        if isinstance(error, Ambiguous):
            return "unknown", lambda connection: tasks.doubt(connection, run, facts)
        if isinstance(error, PermanentError) or run.attempt >= run.max_attempts:
            return "failed", lambda connection: tasks.fail(connection, run, facts)
        wait = policy_of(run.queue).jittered_delay(run.attempt)
        return "retry", lambda connection: tasks.retry(connection, run, wait, facts)

    def _log(self, run: Claimed, outcome: str, error: BaseException, seconds: float) -> None:
        write = (
            log.error if outcome in ("failed", "unknown") else log.warning if outcome == "retry" else log.info
        )
        write(
            f"[{run.queue}] Job {run.id} {outcome}",
            queue=run.queue,
            jobId=str(run.id),
            actor=run.task_name,
            error=one_line(error),
            stack="".join(traceback.format_exception(error))[-4000:] if outcome == "failed" else None,
            jobData=redacted(run.params),
            attemptsMade=run.attempt,
            seconds=round(seconds, 3),
        )
