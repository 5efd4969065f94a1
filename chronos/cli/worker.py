"""chronos worker: `dramatiq chronos.actors` under a supervisor."""

from __future__ import annotations

import os
import signal
import sys

import structlog
from sqlalchemy.exc import DBAPIError

from chronos import logs
from chronos.config import settings
from chronos.engine import schema
from chronos.errors import ChronosError, NotMigrated
from chronos.runtime import EXIT_WRONG, runtime
from chronos.supervisor import Part, Supervisor, start_master
from private_services.children import Child


def work(arguments: list[str]) -> int:
    """What would never work is told here, in one line, instead of by every worker process."""
    configuration = settings()
    logs.set_up(configuration)
    log = structlog.get_logger("chronos.supervisor")
    database = runtime().database
    try:
        schema.require(database)
    except NotMigrated as error:
        sys.stderr.write(f"chronos: {error}\n")
        return EXIT_WRONG
    except (DBAPIError, ChronosError):
        log.warning("PostgreSQL does not answer yet: the worker waits for it")
    database.close()

    def start() -> Child:
        return start_master(
            arguments,
            death_signal=signal.SIGTERM,  # without us nobody would start it again: it stops in good order
            env=os.environ,
            output=sys.stderr.fileno(),
        )

    return Supervisor([Part("worker", start)], configuration.shutdown_seconds, log.warning).run()
