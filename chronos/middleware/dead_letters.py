"""DLQ routing: what failed for good is shown in RabbitMQ's `.XQ` too, in the shape of the dead-letter record.

The record that counts is PostgreSQL's, written with the final status; tools read that one. A sweeper empties `.XQ`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dramatiq.middleware import Middleware

from chronos.errors import one_line
from chronos.logs import redacted
from chronos.middleware.claim import ClaimedMessage


class BuryDeadLetters(Middleware):
    def after_process_message(
        self, broker: Any, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if exception is not None and isinstance(message, ClaimedMessage) and message.outcome == "failed":
            # Dramatiq nacks a failed message; the consumer routes a copy to `.XQ`.
            message.fail()


def dead_letter(message: ClaimedMessage) -> dict[str, Any]:
    run = message.run
    return {
        "originalQueue": run.queue,
        "originalJobId": str(run.id),
        "originalJobData": redacted(run.params),
        "failureReason": one_line(message._exception or ""),
        "attemptsMade": run.attempt,
        "failedAt": datetime.now(UTC).isoformat(),
    }
