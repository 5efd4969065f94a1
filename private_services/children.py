"""Child processes that never outlive this process, however it ends.

Linux: the kernel sends them a signal when their parent ends (PR_SET_PDEATHSIG). In truth it does so when the
THREAD that forked them ends, so one thread that lives as long as the process forks all of them.
Elsewhere: a watcher process does it (watcher.py).
"""

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import IO, Any

from private_services.accounts import Account
from private_services.process_trees import ProcessTree

KERNEL_ENDS_CHILDREN = sys.platform == "linux"

_TRAMPOLINE = Path(__file__).with_name("trampoline.py")


class Child:
    """One child process, with all the processes it makes."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        death_signal: signal.Signals = signal.SIGKILL,
        account: Account | None = None,
        env: Mapping[str, str],
        output: IO[bytes] | int = subprocess.DEVNULL,
        pass_fds: Sequence[int] = (),
        cwd: str | Path = "/",
        umask: int = 0o077,
    ) -> None:
        """death_signal: what the kernel sends to the child when this process ends.

        cwd: not our working folder unless asked for, which the account may not be allowed to enter.
        """
        identity = (account.uid, account.gid) if account else (-1, -1)
        orders = (os.getpid(), int(death_signal), *identity, umask)
        words = [sys.executable, "-I", "-S", _TRAMPOLINE, *orders, *command]
        self._popen = _forker.popen(
            [str(word) for word in words],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=pass_fds,
            cwd=cwd,
            # Not in our process group: Ctrl-C in the terminal is for us, and we stop our children in order.
            start_new_session=True,
        )
        self._tree = ProcessTree(self._popen.pid)
        self._watcher: subprocess.Popen[bytes] | None = None
        if not KERNEL_ENDS_CHILDREN:
            self._start_watcher()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._popen.poll()

    def signal(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def wait(self, timeout: float) -> bool:
        """Whether it ended in time."""
        try:
            self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        self._stop_watcher()
        return True

    def kill(self) -> None:
        self._tree.kill()
        self._popen.wait()
        self._stop_watcher()

    def freeze(self) -> None:
        self._start_watcher()
        self._tree.freeze()

    def thaw(self) -> None:
        self._tree.thaw()
        if KERNEL_ENDS_CHILDREN:
            self._stop_watcher()

    def _start_watcher(self) -> None:
        if self._watcher is None:
            sources = [str(Path(__file__).parent.parent), *sys.path]
            self._watcher = subprocess.Popen(
                [sys.executable, "-m", "private_services.watcher", str(os.getpid()), str(self.pid)],
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(os.path.abspath(source) for source in sources),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )

    def _stop_watcher(self) -> None:
        if self._watcher is not None:
            self._watcher.kill()
            self._watcher.wait()
            self._watcher = None


class _Forker:
    """The thread that forks. A forked copy of this process gets a new one with its first child."""

    _lock: threading.Lock
    _thread: threading.Thread | None
    _jobs: queue.SimpleQueue[tuple[Future[subprocess.Popen[bytes]], Callable[[], subprocess.Popen[bytes]]]]

    def __init__(self) -> None:
        self._reset()
        os.register_at_fork(after_in_child=self._reset)

    def popen(self, *args: Any, **options: Any) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="private_services", daemon=True)
                self._thread.start()
        future: Future[subprocess.Popen[bytes]] = Future()
        self._jobs.put((future, lambda: subprocess.Popen(*args, **options)))
        return future.result()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._thread = None
        self._jobs = queue.SimpleQueue()

    def _serve(self) -> None:
        jobs = self._jobs
        while True:
            future, fork = jobs.get()
            try:
                future.set_result(fork())
            except BaseException as error:
                future.set_exception(error)
            # The caller's Popen must not stay alive here until the next job.
            del future, fork


_forker = _Forker()
