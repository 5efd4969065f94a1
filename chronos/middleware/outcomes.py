"""Turns how a run ended into one of a closed set of outcomes, and hands it to the finisher."""

from __future__ import annotations

import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

from dramatiq.middleware import Middleware
from sqlalchemy import Connection

from chronos import telegram
from chronos.engine import tasks
from chronos.engine.endings import Ending
from chronos.engine.tasks import Claimed
from chronos.errors import Ambiguous, Cancelled, ClaimLost, Expired, HandBack, Later, PermanentError, one_line, storable
from chronos.middleware.claim import ClaimedMessage
from chronos.queues import policy_of
from chronos.runtime import Runtime

#: A task that comes back sooner is not worth an edit of its card.
VISIBLE_SECONDS = 3.0

Write = Callable[[Connection], str | None]


class WriteOutcomes(Middleware):
    actor_options = {"params", "on_requeued"}

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    def before_process_message(self, broker: Any, message: Any) -> None:
        if isinstance(message, ClaimedMessage):
            message.started = time.monotonic()

    def after_process_message(
        self, broker: Any, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if not isinstance(message, ClaimedMessage):
            return
        run, held = message.run, self.runtime.held
        message.seconds = time.monotonic() - message.started
        held.ran(run, message.seconds)
        if exception is None and run.committed:
            message.outcome = "completed"
            held.settled([run])
            return
        if exception is None:
            message.outcome = "completed"
            ending = Ending(run, run.result)
            if not held.offer(ending):
                self.runtime.finish(ending)
            return
        message.outcome, write = decide(run, exception)
        hook = broker.actors[message.actor_name].options.get("on_requeued")
        outcome = message.outcome

        def then(status: str | None) -> None:
            if hook is not None and status == "pending":
                hook(run, outcome)
            if status == "pending" and run.chat is not None and waits_visibly(exception):
                telegram.run_soon(show_card(run.id))

        self.runtime.finish(Ending(run, write=write, then=then))


def waits_visibly(error: BaseException) -> bool:
    """Whether people see it wait: after a failure, or for some time."""
    return error.seconds >= VISIBLE_SECONDS if isinstance(error, Later) else isinstance(error, Exception)


async def show_card(task_id: uuid.UUID) -> None:
    from chronos import cards

    await cards.show_in_passing(task_id)


def decide(run: Claimed, error: BaseException) -> tuple[str, Write]:
    """The outcome's name and the one statement that writes it."""
    facts: dict[str, str | None] = {
        "message": one_line(error) or type(error).__name__,
        "class": type(error).__name__,
        "traceback": storable("".join(traceback.format_exception(error))[-8000:]),
    }
    match error:
        case ClaimLost():
            return "lost", lambda connection: None
        case HandBack():
            return "handed back", lambda connection: tasks.hand_back(connection, run, one_line(error), wait=1)
        case Later():
            return "later", lambda connection: tasks.later(connection, run, error.seconds, error.why)
        case Ambiguous():
            return "unknown", lambda connection: tasks.doubt(connection, run, facts)
        case Expired():
            return "expired", lambda connection: tasks.end_expired(connection, run, facts["message"] or "")
    if isinstance(error, Cancelled) or run.cancelled:
        return "cancelled", lambda connection: tasks.end_cancelled(connection, run, facts["message"] or "")
    if isinstance(error, PermanentError) or run.attempt >= run.max_attempts:
        return "failed", lambda connection: tasks.fail(connection, run, facts)
    wait = policy_of(run.queue).jittered_delay(run.attempt)
    return "retry", lambda connection: tasks.retry(connection, run, wait, facts)
