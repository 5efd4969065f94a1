"""One line per run that did not simply complete, with the fields that an operator searches by."""

from __future__ import annotations

import sys
import traceback
from typing import Any

import structlog
from dramatiq.middleware import Middleware

from chronos import logs
from chronos.errors import ChronosError, one_line
from chronos.logs import redacted
from chronos.middleware.claim import ClaimedMessage
from chronos.runtime import EXIT_WRONG, Runtime

log = structlog.get_logger("chronos.tasks")

LEVELS = {"failed": "error", "unknown": "error", "retry": "warning"}


class LogRuns(Middleware):
    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._routine = False

    def after_process_boot(self, broker: Any) -> None:
        try:
            logs.set_up(self.runtime.settings)
        except ChronosError as error:
            # Dramatiq would log any other exception, nowhere, and go on.
            sys.stderr.write(f"chronos: {error}\n")
            raise SystemExit(EXIT_WRONG) from None
        # A completed run is in its row; a line for each would cost more than the run of a quick task.
        self._routine = self.runtime.settings.log_level == "debug"

    def before_process_message(self, broker: Any, message: Any) -> None:
        if self._routine and isinstance(message, ClaimedMessage):
            log.debug(f"[{message.run.queue}] Job {message.run.id} started", **_fields(message))

    def after_process_message(
        self, broker: Any, message: Any, *, result: Any = None, exception: BaseException | None = None
    ) -> None:
        if exception is None and not self._routine:
            return
        if not isinstance(message, ClaimedMessage) or message.outcome == "lost":
            return
        more: dict[str, Any] = {}
        if exception is not None:
            more["error"] = one_line(exception)
            if message.outcome in ("failed", "unknown"):
                more["stack"] = "".join(traceback.format_exception(exception))[-4000:]
        write = getattr(log, LEVELS.get(message.outcome, "info" if exception is not None else "debug"))
        write(
            f"[{message.run.queue}] Job {message.run.id} {message.outcome}",
            **_fields(message),
            **more,
            seconds=round(message.seconds, 3),
        )


def _fields(message: ClaimedMessage) -> dict[str, Any]:
    run = message.run
    return {
        "queue": run.queue,
        "jobId": str(run.id),
        "actor": run.task_name,
        "attemptsMade": run.attempt,
        "jobData": redacted(run.params),
    }
