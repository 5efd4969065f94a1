"""Keeps processes running: Dramatiq's master ends with its first dead child, so somebody starts it again.

1. A part that ends by itself is started again, with growing pauses; wrong settings or schema (exit 2) end us too.
2. Asked to stop (SIGTERM, Ctrl-C) we ask the parts, which finish or hand back what runs; asked again, they hand it back
   at once. What does not end in time is killed.
3. When we are killed, the kernel tells the parts (`death_signal`), and their processes end with them.
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

#: A part that lived so long did not fail at its start: the pauses begin anew.
LONG_LIFE = 30.0
FIRST_PAUSE = 0.2
#: Seconds beyond the grace of the parts before they are killed.
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


class Part:
    """A process that is to run, and the one that runs."""

    def __init__(self, name: str, start: Callable[[], Child]) -> None:
        self.name, self._launch = name, start
        self.child: Child | None = None
        self.born = self.start_at = 0.0
        self._waits = pauses(FIRST_PAUSE)

    def start(self) -> None:
        self.born = time.monotonic()
        self.child = self._launch()

    @property
    def running(self) -> bool:
        return self.child is not None and self.child.running

    def ended(self) -> float:
        """It has ended by itself; the seconds after which it starts again."""
        if time.monotonic() - self.born > LONG_LIFE:
            self._waits = pauses(FIRST_PAUSE)
        self.child, pause = None, next(self._waits)
        self.start_at = time.monotonic() + pause
        return pause


class Supervisor:
    def __init__(
        self,
        parts: Sequence[Part],
        grace: float,
        say: Callable[[str], None],
        *,
        on_stop: Callable[[int], None] = lambda asked: None,
        idle: Callable[[], float] = lambda: IDLE,
    ) -> None:
        """on_stop(n): asked to stop for the n-th time. idle(): called now and then; seconds until the next call."""
        self.parts, self._grace, self._say = parts, grace, say
        self._on_stop, self._idle = on_stop, idle
        self._asked = 0
        self._wakeups = -1
        #: Who ended because of wrong settings.
        self.wrong: Part | None = None

    def run(self) -> int:
        """Until we are asked to stop; the exit code of this process. In the main thread: it takes the signals."""
        with self._signals():
            try:
                while not self._asked and self.wrong is None:
                    for part in self.parts:
                        self._keep(part)
                    if self.wrong is None:
                        self._sleep(min([self._idle(), *self._waits()]))
                code = self._stop()
                return code if self.wrong is None else EXIT_WRONG
            finally:
                for part in self.parts:
                    if part.child is not None and part.running:
                        part.child.kill()

    def _keep(self, part: Part) -> None:
        if part.child is not None and not part.running:
            code = part.child.exit_code or 0
            if code == EXIT_WRONG:
                self.wrong = part
                return
            pause = part.ended()
            self._say(f"the {part.name} ended ({_how(code)}) and is started again in {pause:g} s")
        if part.child is None and time.monotonic() >= part.start_at:
            part.start()

    def _waits(self) -> list[float]:
        return [max(0.0, part.start_at - time.monotonic()) for part in self.parts if part.child is None]

    def _stop(self) -> int:
        """Ask every part to end, and see that it does; the first exit code that says that something went wrong."""
        told, told_at, ends = 0, 0.0, float("inf")
        while running := [part for part in self.parts if part.running]:
            now = time.monotonic()
            if told < max(1, min(self._asked, 2)) and now >= told_at + SIGNAL_GAP:
                told, told_at = told + 1, now
                ends = min(ends, now + self._grace + MARGIN)
                if self._asked:
                    self._on_stop(told)
                for part in running:
                    assert part.child is not None  # noqa: S101
                    part.child.signal(signal.SIGTERM)
            elif now > ends:
                for part in running:
                    self._say(f"the {part.name} did not end within {self._grace + MARGIN:g} s and is killed")
                return 1
            else:
                self._sleep(SIGNAL_GAP)
        codes = [part.child.exit_code or 0 for part in self.parts if part.child is not None]
        # SIGTERM reached it before it had begun to listen: nothing had started.
        return next((code for code in codes if code not in (0, -signal.SIGTERM)), 0)

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
