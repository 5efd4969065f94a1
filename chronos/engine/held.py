"""What this process holds: claimed runs, claims in flight, and how many more it should take.

No hoarding: a process claims what its free threads can start within about 100 ms, over all its queues.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable

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
        self._changed = threading.Condition(threading.Lock())
        self._runs: dict[uuid.UUID, Claimed] = {}
        self._in_flight: dict[uuid.UUID, int] = {}
        self._average: dict[str, float] = {}
        self._outstanding = 0
        self._busy_since: float | None = None
        #: Who waits, and below how many outstanding runs it is worth waking them.
        self._room_wanted: dict[str, int] = {}
        self._ends_wanted: set[str] = set()
        #: Outcomes that went into the table, by queue.
        self._ends: dict[str, int] = {}

    # -- claims

    def begin_claim(self, queue: str, token: uuid.UUID, wanted: int) -> int:
        """Reserve room for a claim, which then belongs to no other queue; how many may be claimed, perhaps none."""
        with self._changed:
            reserved = min(wanted, self.room(queue))
            if reserved:
                self._in_flight[token] = reserved
                self._outstanding += reserved
            return reserved

    def end_claim(self, token: uuid.UUID, runs: list[Claimed]) -> None:
        with self._changed:
            for run in runs:
                self._runs[run.id] = run
            self._outstanding += len(runs) - self._in_flight.pop(token)
            self._note_busy()

    def ran(self, run: Claimed, seconds: float | None) -> None:
        """A thread is free again. The run stays held until its outcome is in the table (`settled`)."""
        with self._changed:
            self._outstanding -= 1
            if seconds is not None:
                old = self._average.get(run.queue)
                self._average[run.queue] = seconds if old is None else old + (seconds - old) * 0.1
            self._note_busy()
            if self._room_wanted and self._outstanding <= max(self._room_wanted.values()):
                self._changed.notify_all()

    def settled(self, runs: Iterable[Claimed]) -> None:
        """Their outcomes are in the table: a place under a limit is free again."""
        with self._changed:
            for run in runs:
                # By identity: the same task may be claimed again before the answer to its last outcome arrives.
                if self._runs.get(run.id) is run:
                    del self._runs[run.id]
                self._ends[run.queue] = self._ends.get(run.queue, 0) + 1
                if run.queue in self._ends_wanted:
                    self._changed.notify_all()

    def holds(self, id_: uuid.UUID, token: uuid.UUID) -> bool:
        with self._changed:
            run = self._runs.get(id_)
            return token in self._in_flight or (run is not None and run.token == token)

    def runs(self) -> list[Claimed]:
        with self._changed:
            return list(self._runs.values())

    def cancel(self, id_: uuid.UUID) -> None:
        with self._changed:
            run = self._runs.get(id_)
        if run is not None:
            run.cancelled = True

    # -- budget

    def average(self, queue: str) -> float:
        """Seconds that a run of this queue takes here; 0.25 until one has ended."""
        return self._average.get(queue, 0.25)

    def ahead(self, queue: str) -> int:
        """How many runs of this queue may wait in front of the threads; 0 until the queue is known to be quick."""
        average = self._average.get(queue)
        if average is None or average >= AHEAD_SECONDS:
            return 0
        return min(MOST_AHEAD, int(self.threads * AHEAD_SECONDS / max(average, 1e-6)))

    def room(self, queue: str) -> int:
        """How many more runs of this queue to claim now."""
        return 0 if self.stopping else max(0, self._capacity(queue) - self._outstanding)

    def _capacity(self, queue: str) -> int:
        reserve = 0
        if self.queues > 1 and self._average.get(queue, 0.0) >= SLOW_SECONDS:
            reserve = max(1, self.threads // 4)
        return self.threads - reserve + self.ahead(queue)

    @property
    def idle_threads(self) -> bool:
        return self._outstanding < self.threads

    def busy_for(self) -> float:
        """Seconds since when every thread has had work."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def wait_for_room(self, queue: str, needed: int, timeout: float) -> None:
        with self._changed:
            if self.room(queue) >= needed and not self.stopping:
                return
            self._room_wanted[queue] = self._capacity(queue) - needed
            self._changed.wait(timeout)
            self._room_wanted.pop(queue, None)

    def ends(self, queue: str) -> int:
        return self._ends.get(queue, 0)

    def wait_for_end(self, queue: str, since: int, timeout: float) -> bool:
        """Until one more outcome of this queue is in the table than `since`; False: none came in time."""
        with self._changed:
            if self.ends(queue) == since:
                self._ends_wanted.add(queue)
                self._changed.wait(timeout)
                self._ends_wanted.discard(queue)
            return self.ends(queue) != since

    def _note_busy(self) -> None:
        if self._outstanding < self.threads:
            self._busy_since = None
        elif self._busy_since is None:
            self._busy_since = time.monotonic()
