"""Becomes the given command, as the given user, so that the kernel ends it when its parent ends.

Started by children.py as a script, by its path. A program of its own, because the wish for a signal at the
parent's death is lost when a process changes its user: it has to be made after that and before the exec, and
Python code between fork and exec is not safe in a program with threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, death_signal: int, uid: int, gid: int, umask: int, command: list[str]) -> None:
    """uid -1: stay who we are."""
    libc = ctypes.CDLL(None, use_errno=True)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(umask)
    if uid != -1:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux" and libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0) != 0:
        sys.exit(f"prctl(PR_SET_PDEATHSIG) failed: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:
        sys.exit("the parent ended before its child began")
    os.execv(command[0], command)  # noqa: S606 -- the whole purpose of this file


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:6]]
    main(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], sys.argv[6:])
