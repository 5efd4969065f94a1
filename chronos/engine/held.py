"""What this process holds: claimed runs, claims in flight, and how many more it should take.

No hoarding: a process claims what its free threads can start within about 100 ms, over all its queues.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable

from chronos.engine.tasks import Claimed

#: How much work, in seconds, may wait claimed in front of the threads.
AHEAD_SECONDS = 0.1
MOST_AHEAD = 256
#: Runs of this length leave a quarter of the threads to the other queues of the process.
SLOW_SECONDS = 2.0


class Held:
    def __init__(self, threads: int = 8, queues: int = 1) -> None:
        self.threads = threads
        self.queues = queues
        self.stopping = False
        self._lock = threading.Lock()
        self._runs: dict[uuid.UUID, Claimed] = {}
        self._in_flight: set[uuid.UUID] = set()
        self._average: dict[str, float] = {}
        self._outstanding = 0
        self._wakers: list[Callable[[], None]] = []
        self._busy_since: float | None = None

    def on_release(self, waker: Callable[[], None]) -> None:
        self._wakers.append(waker)

    # -- claims

    def begin_claim(self, token: uuid.UUID) -> None:
        with self._lock:
            self._in_flight.add(token)

    def end_claim(self, token: uuid.UUID, runs: list[Claimed]) -> None:
        with self._lock:
            for run in runs:
                self._runs[run.id] = run
            self._outstanding += len(runs)
            self._in_flight.discard(token)
            self._note_busy()

    def ran(self, run: Claimed, seconds: float | None) -> None:
        """A thread is free again. The run stays held until its outcome is in the table (`settled`)."""
        with self._lock:
            self._outstanding -= 1
            if seconds is not None:
                old = self._average.get(run.queue)
                self._average[run.queue] = seconds if old is None else old + (seconds - old) * 0.1
            self._note_busy()
        for waker in self._wakers:
            waker()

    def settled(self, id_: uuid.UUID) -> None:
        with self._lock:
            self._runs.pop(id_, None)

    def holds(self, id_: uuid.UUID, token: uuid.UUID) -> bool:
        with self._lock:
            run = self._runs.get(id_)
            return token in self._in_flight or (run is not None and run.token == token)

    def runs(self) -> list[Claimed]:
        with self._lock:
            return list(self._runs.values())

    def cancel(self, id_: uuid.UUID) -> None:
        with self._lock:
            run = self._runs.get(id_)
        if run is not None:
            run.cancelled = True

    # -- budget

    def _note_busy(self) -> None:
        if self._outstanding < self.threads:
            self._busy_since = None
        elif self._busy_since is None:
            self._busy_since = time.monotonic()

    def ahead(self, queue: str) -> int:
        """How many runs of this queue may wait in front of the threads; 0 until the queue is known to be quick."""
        average = self._average.get(queue)
        if average is None or average >= AHEAD_SECONDS:
            return 0
        return min(MOST_AHEAD, int(self.threads * AHEAD_SECONDS / max(average, 1e-6)))

    def room(self, queue: str) -> int:
        if self.stopping:
            return 0
        reserve = 0
        if self.queues > 1 and self._average.get(queue, 0.0) >= SLOW_SECONDS:
            reserve = max(1, self.threads // 4)
        return max(0, self.threads - reserve + self.ahead(queue) - self._outstanding)

    @property
    def outstanding(self) -> int:
        return self._outstanding

    def busy_for(self) -> float:
        """Seconds since when every thread has had work."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since
