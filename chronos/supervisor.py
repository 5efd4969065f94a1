"""Keeps `dramatiq chronos.actors` running: its master ends with its first dead child, so somebody starts it again.

1. A master that ends by itself is started again, with growing pauses; wrong settings or schema (exit 2) end us too.
2. Asked to stop (SIGTERM, Ctrl-C) we ask the master, which finishes or hands back what runs; asked again, it hands
   back at once. What does not end in time is killed.
3. When we are killed, the kernel tells the master (`death_signal`), and its processes end with it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from chronos.db import pauses
from chronos.runtime import EXIT_WRONG
from private_services.children import Child

#: A master that lived so long did not fail at its start: the pauses begin anew.
LONG_LIFE = 30.0
FIRST_PAUSE = 0.2
#: Seconds beyond the grace of the workers before they are killed.
MARGIN = 5.0
#: Seconds between two looks when nothing wakes us.
IDLE = 60.0
#: Seconds between two signals: the same signal twice within a moment is one for the kernel.
SIGNAL_GAP = 0.5
#: Milliseconds. Dramatiq's master hears no signal while it waits for its processes to boot, 30 s unless told.
BOOT_WAIT = 1000


def start_master(
    arguments: Sequence[str], *, death_signal: signal.Signals, env: Mapping[str, str], output: IO[bytes] | int
) -> Child:
    os.umask(umask := os.umask(0o077))
    return Child(
        [sys.executable, "-m", "dramatiq", "chronos.actors", "--worker-fork-timeout", str(BOOT_WAIT), *arguments],
        death_signal=death_signal,
        env=env,
        output=output,
        cwd=os.getcwd(),  # as `dramatiq` itself: the user's modules and .env are here
        umask=umask,
    )


class Supervisor:
    def __init__(
        self,
        start: Callable[[], Child],
        grace: float,
        say: Callable[[str], None],
        *,
        on_stop: Callable[[int], None] = lambda asked: None,
        idle: Callable[[], float] = lambda: IDLE,
    ) -> None:
        """on_stop(n): asked to stop for the n-th time. idle(): called now and then; seconds until the next call."""
        self._start, self._grace, self._say = start, grace, say
        self._on_stop, self._idle = on_stop, idle
        self._asked = 0
        self._wakeups = -1
        self.master: Child | None = None

    def run(self) -> int:
        """Until we are asked to stop; the exit code of this process. In the main thread: it takes the signals."""
        with self._signals():
            waits = pauses(FIRST_PAUSE)
            while not self._asked:
                born = time.monotonic()
                self.master = self._start()
                try:
                    code = self._watch(self.master)
                finally:
                    if self.master.running:
                        self.master.kill()
                if self._asked or code == EXIT_WRONG:
                    return code
                if time.monotonic() - born > LONG_LIFE:
                    waits = pauses(FIRST_PAUSE)
                pause = next(waits)
                self._say(f"the worker ended ({_how(code)}) and is started again in {pause:g} s")
                self._pause(pause)
            return 0

    def _watch(self, master: Child) -> int:
        told, told_at, ends = 0, 0.0, float("inf")
        while master.running:
            now = time.monotonic()
            if told < min(self._asked, 2) and now >= told_at + SIGNAL_GAP:
                told, told_at = told + 1, now
                ends = min(ends, now + self._grace + MARGIN)
                self._on_stop(told)
                master.signal(signal.SIGTERM)
            elif now > ends:
                self._say(f"the worker did not end within {self._grace + MARGIN:g} s and is killed")
                master.kill()
                return 1
            else:
                self._sleep(SIGNAL_GAP if told else self._idle())
        code = master.exit_code or 0
        # SIGTERM reached it before it had begun to listen: nothing had started.
        return 0 if told and code == -signal.SIGTERM else code

    def _pause(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while not self._asked and (left := ends - time.monotonic()) > 0:
            self._sleep(left)

    def _sleep(self, seconds: float) -> None:
        """Until a signal comes, that of a child's end included; one that came before the call counts."""
        if select.select([self._wakeups], [], [], seconds)[0]:
            os.read(self._wakeups, 4096)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(number: int, frame: Any) -> None:
            self._asked += 1

        def look(number: int, frame: Any) -> None:
            """Only so that Python notices the signal and writes to the pipe."""

        self._wakeups, written = os.pipe()
        os.set_blocking(written, False)
        fd = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        handlers = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGCHLD: look}
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup
            handlers[signal.SIGHUP] = stop
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(fd)
            os.close(self._wakeups)
            os.close(written)


def _how(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"
