"""Structured logs: an event in words, ids as fields; console or file, pretty or JSON; Dramatiq's lines included.

No secret that this process knows is ever written, whoever logs it.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

import structlog

from chronos.config import Settings
from chronos.errors import BadInput
from chronos.redaction import without_secrets

SECRET_NAMES = ("token", "password", "secret", "authorization", "api_key")


def redacted(value: Any) -> Any:
    """The same data with the values of secret-looking names hidden."""
    if isinstance(value, dict):
        return {
            key: "***" if any(name in str(key).lower() for name in SECRET_NAMES) else redacted(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [redacted(item) for item in value]
    return value


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """The last thing that a line passes: a secret in a traceback or in somebody else's words is hidden too."""

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


def _without_logging() -> None:
    """What nobody caught is printed past the log: the same care for it."""

    def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.stderr.write(without_secrets("".join(traceback.format_exception(kind, error, trace))))

    sys.excepthook = tell
    threading.excepthook = lambda args: (
        tell(args.exc_type, args.exc_value, args.exc_traceback)
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit)
        else None
    )


def _into_file(path: Path) -> logging.Handler:
    try:
        return logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"CHRONOS_LOG_FILE: cannot write to {path}: {error.strerror}") from None


def set_up(settings: Settings) -> None:
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", key="time"),
    ]
    pretty = settings.log_format == "pretty"
    last: Any = (
        structlog.dev.ConsoleRenderer(
            colors=settings.log_file is None and sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,
        )
        if pretty
        else structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
    )
    tail: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if not pretty:
        tail += [structlog.processors.format_exc_info, structlog.processors.EventRenamer("msg")]
    handler = _into_file(settings.log_file) if settings.log_file else logging.StreamHandler()
    handler.setFormatter(_Formatter(foreign_pre_chain=shared, processors=[*tail, last]))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    _without_logging()
    root.setLevel(settings.log_level.upper())
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    # Outcomes are logged once, by us, with the task's fields.
    logging.getLogger("dramatiq.worker.WorkerThread").setLevel(logging.CRITICAL)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
