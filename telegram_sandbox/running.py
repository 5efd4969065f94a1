"""Where a running sandbox tells others its address: in its folder. Its lock says whether it lives, however it ended."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def tell(folder: Path, url: str) -> None:
    fresh = folder / "running.new"
    fresh.write_text(f"{url}\n")
    fresh.replace(folder / "running.url")


def forget(folder: Path) -> None:
    (folder / "running.url").unlink(missing_ok=True)


def find(folder: Path) -> str | None:
    """The address of the sandbox that runs on this folder; None: there is none."""
    try:
        lock = os.open(folder / "sandbox.lock", os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        pass
    finally:
        os.close(lock)
    try:
        return (folder / "running.url").read_text().strip() or None
    except OSError:
        return None
