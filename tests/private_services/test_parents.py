"""A forked process ends with its parent: by the kernel, and where that cannot be, by itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.private_services.owners import is_gone, wait_until_gone
from tests.processes import ROOT

#: A parent whose forked child says its number, does the given lines, and then stays for ever.
PARENT = """
import multiprocessing, os, signal, sys, time
from private_services.parents import end_with_parent

def child(parent):
    print(os.getpid(), flush=True)
    {lines}
    while True:
        signal.pause()

process = multiprocessing.get_context("fork").Process(target=child, args=[os.getpid()])
process.start()
process.join()
"""


class Family:
    def __init__(self, lines: str) -> None:
        program = PARENT.format(lines=lines)
        self.parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.child = psutil.Process(int(self.said()))

    def said(self) -> str:
        assert self.parent.stdout is not None
        return self.parent.stdout.readline().strip()

    def end(self) -> None:
        if not is_gone(self.child):
            self.child.kill()
        self.parent.kill()
        self.parent.communicate(timeout=10)


@contextmanager
def family(lines: str) -> Iterator[Family]:
    made = Family(lines)
    try:
        yield made
    finally:
        made.end()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has PR_SET_PDEATHSIG")
def test_the_kernel_ends_a_child_that_hangs() -> None:
    with family("end_with_parent(); print('asked', flush=True); os.kill(os.getpid(), signal.SIGSTOP)") as made:
        assert made.said() == "asked"
        assert not is_gone(made.child)
        made.parent.kill()
        wait_until_gone([made.child])


def test_a_child_ends_itself_where_the_kernel_does_not() -> None:
    with family("sys.platform = 'darwin'; end_with_parent(); print('asked', flush=True)") as made:
        assert made.said() == "asked"
        assert not is_gone(made.child)
        made.parent.kill()
        wait_until_gone([made.child])


def test_a_child_whose_parent_was_gone_before_it_asked_ends_too() -> None:
    """The kernel's signal comes for a death after the wish alone."""
    with family("exec('while os.getppid() == parent: time.sleep(0.01)'); end_with_parent()") as made:
        made.parent.kill()
        wait_until_gone([made.child])
