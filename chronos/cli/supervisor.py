"""Keeps `dramatiq chronos.actors` running: Dramatiq's master ends with its first dead child, so somebody must start it again."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any

import structlog

from chronos.db import pauses
from chronos.runtime import EXIT_WRONG

log = structlog.get_logger("chronos.supervisor")

#: A master that lived so long did not fail at its start: the pauses begin anew.
LONG_LIFE = 30.0


def supervise(arguments: list[str]) -> int:
    stopping = False
    child: subprocess.Popen[bytes] | None = None

    def stop(signum: int, frame: Any) -> None:
        nonlocal stopping
        stopping = True
        if child is not None and child.poll() is None:
            child.send_signal(signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    waits = pauses(0.2)
    while True:
        born = time.monotonic()
        child = subprocess.Popen(
            [sys.executable, "-m", "dramatiq", "chronos.actors", *arguments], start_new_session=True
        )
        code = child.wait()
        if stopping:
            return code
        if code == EXIT_WRONG:
            return code  # settings or schema: it said why, and trying again will not help
        if time.monotonic() - born > LONG_LIFE:
            waits = pauses(0.2)
        pause = next(waits)
        log.warning("the worker ended and is started again", exit_code=code, in_s=round(pause, 1))
        time.sleep(pause)
