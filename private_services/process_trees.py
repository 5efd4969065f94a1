"""A server with all the processes under it: kill, freeze and thaw them as one."""

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

#: Seconds for the kernel to carry out a signal that no process can refuse.
SIGNAL_DEADLINE = 10.0

_ENDED = {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}


class ProcessTree:
    """A later process with the same number is never mistaken for the one this tree was made of."""

    def __init__(self, pid: int) -> None:
        #: Kept, because after the root's death nothing leads to its children.
        self._frozen: list[psutil.Process] = []
        self._root = None
        with contextlib.suppress(psutil.NoSuchProcess):
            self._root = psutil.Process(pid)

    @property
    def alive(self) -> bool:
        return self._root is not None and _status(self._root) not in {None, *_ENDED}

    def kill(self) -> None:
        """kill -9 of every process; returns when all of them are gone."""
        # All are stopped first, so that none can fork a child after the children were listed.
        tree = [*self._stop(), *self._frozen]
        for process in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        _wait(tree, _ENDED)

    def freeze(self) -> None:
        self._frozen = self._stop()

    def thaw(self) -> None:
        for process in reversed(self._frozen):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()
        self._frozen = []

    def _stop(self) -> list[psutil.Process]:
        """The tree, parents before children; every process is stopped before its children are listed."""
        tree = [self._root] if self._root is not None else []
        for process in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()
                _wait([process], {psutil.STATUS_STOPPED, *_ENDED})
                tree.extend(process.children())
        return tree


def works_in(pid: int, folder: Path) -> bool:
    """Whether this process exists and has the folder as its working folder; False when we may not know."""
    try:
        return folder.samefile(psutil.Process(pid).cwd())
    except (psutil.Error, OSError):
        return False


def _wait(processes: Iterable[psutil.Process], statuses: set[str]) -> None:
    """Until every process has one of the statuses or does not exist."""
    deadline = time.monotonic() + SIGNAL_DEADLINE
    for process in processes:
        while _status(process) not in {None, *statuses} and time.monotonic() < deadline:
            time.sleep(0.002)


def _status(process: psutil.Process) -> str | None:
    try:
        return str(process.status()) if process.is_running() else None
    except psutil.NoSuchProcess:
        return None
