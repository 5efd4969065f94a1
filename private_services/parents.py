"""A forked process that never outlives its parent, however that one ends: the other end of children.py.

For programs that fork by themselves (multiprocessing), where no trampoline comes between fork and exec.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
import threading

from private_services.trampoline import PR_SET_PDEATHSIG


def end_with_parent() -> None:
    """kill -9 of this process when the one that started it through multiprocessing is gone."""
    if sys.platform == "linux":
        # The kernel's own way: it works for a process that hangs, too.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    # Elsewhere, and for a parent that was gone before the line above.
    threading.Thread(target=_wait_for_its_end, name="end with parent", daemon=True).start()


def _wait_for_its_end() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)
