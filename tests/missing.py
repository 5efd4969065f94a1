"""Programs that only Debian's packages bring: installed once where we may, else missed loudly. Never silently.

Tests run in several processes: each notes what it missed, and the one that prints collects it.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

#: What is not tested, and why.
NOT_TESTED: dict[str, str] = {}


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """apt-get can be called by one process only."""
    with open(Path(tempfile.gettempdir()) / f"chronos-tests-{os.getuid()}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def miss(what: str, why: str) -> NoReturn:
    """Skip the test, which is said at the end; an error where nothing may be missing."""
    NOT_TESTED[what] = why
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)
