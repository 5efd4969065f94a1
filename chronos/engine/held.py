"""What this process holds: claimed runs, claims in flight, and how many more it should take.

No hoarding: a process claims what its free threads can start within about 100 ms, over all its queues.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable

from chronos.engine.endings import Ending
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
        #: Seconds that a run takes, by queue and by actor.
        self._average: dict[str, float] = {}
        self._average_of: dict[str, float] = {}
        self._outstanding = 0
        self._busy_since: float | None = None
        #: Who waits, and below how many outstanding runs it is worth waking them.
        self._room_wanted: dict[str, int] = {}
        self._ends_wanted: set[str] = set()
        #: Outcomes that went into the table, by queue.
        self._ends: dict[str, int] = {}
        #: Runs that completed, of the queues whose consumer is about to ask a limit for a place: it takes the place of
        #: the ended run and writes its completion in one go.
        self._offered: dict[str, list[Ending]] = {}

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
                _learn(self._average, run.queue, seconds)
                _learn(self._average_of, run.task_name, seconds)
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

    def average_of(self, task_name: str) -> float:
        """The same for an actor."""
        return self._average_of.get(task_name, 0.25)

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

    def ends_since(self, queue: str, since: int) -> int:
        """How many places of this queue have become free: outcomes that went into the table, and those on offer."""
        return self.ends(queue) - since + len(self._offered.get(queue, ()))

    def wait_for_end(self, queue: str, since: int, timeout: float) -> bool:
        """Until there is one; False: none came in time."""
        with self._changed:
            if not self.ends_since(queue, since):
                self._ends_wanted.add(queue)
                self._changed.wait(timeout)
                self._ends_wanted.discard(queue)
            return self.ends_since(queue, since) > 0

    def want_endings(self, queue: str, wanted: bool) -> list[Ending]:
        """Whether the consumer of the queue takes completions; what it had not taken when it stops to."""
        with self._changed:
            if wanted:
                self._offered.setdefault(queue, [])
                return []
            return self._offered.pop(queue, [])

    def offer(self, ending: Ending) -> bool:
        """Give a completion to the consumer of its queue; False: it does not want any now."""
        with self._changed:
            queue = ending.run.queue
            if self.stopping or queue not in self._offered:
                return False
            self._offered[queue].append(ending)
            if queue in self._ends_wanted:
                self._changed.notify_all()
            return True

    def take_offered(self, queue: str) -> list[Ending]:
        with self._changed:
            taken = self._offered.get(queue, [])
            if taken:
                self._offered[queue] = []
            return taken

    def _note_busy(self) -> None:
        if self._outstanding < self.threads:
            self._busy_since = None
        elif self._busy_since is None:
            self._busy_since = time.monotonic()


def _learn(averages: dict[str, float], name: str, seconds: float) -> None:
    old = averages.get(name)
    averages[name] = seconds if old is None else old + (seconds - old) * 0.1
