"""Wake-ups that a limit of their own actor refuses. They step aside, so that the others of their queue may pass.

Their deliveries are acked: the row is the truth, and the relay publishes it again should this process die. Nothing here
does I/O. What would have to wait for longer than `AHEAD_SECONDS` does not stay: it gets a time to come back.
"""

from __future__ import annotations

import random
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dramatiq.message import Message

#: Seconds of work, at the full limit, that one process keeps aside for an actor.
AHEAD_SECONDS = 2.0
MOST = 500
#: Seconds after which even the last of a long backlog looks whether its turn has come; not all in the same moment.
LONGEST_RETURN = 60.0

Entry = tuple[Message[Any], uuid.UUID]


class _Actor:
    def __init__(self) -> None:
        self.entries: deque[Entry] = deque()
        self.ask_at = 0.0
        #: When the last one that was sent away is to come back.
        self.last_turn = 0.0


class Aside:
    """All clocks are time.monotonic()."""

    def __init__(
        self, options: Callable[[str], Mapping[str, Any]], average: Callable[[str], float], lease: float
    ) -> None:
        """`options` of an actor (rate, concurrency); `average` seconds that one of its runs takes."""
        self._options, self._average = options, average
        # After a lease the relay publishes them anew, to whomever.
        self._ahead = min(AHEAD_SECONDS, lease / 2)
        self._actors: dict[str, _Actor] = {}
        self._ids: set[uuid.UUID] = set()

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, id_: uuid.UUID) -> bool:
        return id_ in self._ids

    def waits_for(self, name: str, now: float) -> bool:
        """Whether others of this actor are here already, refused a moment ago."""
        actor = self._actors.get(name)
        return actor is not None and bool(actor.entries) and now < actor.ask_at

    @property
    def ask_at(self) -> float:
        return min((actor.ask_at for actor in self._actors.values() if actor.entries), default=float("inf"))

    def asks(self, now: float, ends: int) -> int:
        """How many are worth asking for when `ends` runs have ended since the last question."""
        return sum(self._worth(name, now, ends) for name in self._actors)

    def take(self, most: int, now: float, ends: int) -> list[Entry]:
        """The oldest of each actor that `asks` counted."""
        taken: list[Entry] = []
        for name, actor in self._actors.items():
            for _ in range(min(self._worth(name, now, ends), most - len(taken))):
                taken.append(actor.entries.popleft())
        self._ids.difference_update(id_ for _, id_ in taken)
        return taken

    def _worth(self, name: str, now: float, ends: int) -> int:
        actor = self._actors[name]
        if not ends and now < actor.ask_at:
            return 0
        # One more than are known to be free: another process may have ended something too.
        return min(len(actor.entries), self._at_once(name), max(1, ends) + 1)

    def keep(self, name: str, entries: Sequence[Entry], now: float, ask_in: float) -> list[tuple[uuid.UUID, float]]:
        """Put back, in front, what was refused: not to be asked for before `ask_in` seconds have passed.

        Returns those for which there is no place, each with the seconds after which it is to come back.
        """
        actor = self._actors.setdefault(name, _Actor())
        actor.ask_at = now + ask_in
        places = self._places(name) if ask_in <= self._ahead else 0
        actor.entries.extendleft(reversed(entries[:places]))
        self._ids.update(id_ for _, id_ in entries[:places])
        return [self._turn(name, id_, now, ask_in) for _, id_ in entries[places:]]

    def queue_up(self, entry: Entry, now: float) -> list[tuple[uuid.UUID, float]]:
        """Put one that has just come behind the others of its actor; returns as `keep` does."""
        name = entry[0].actor_name
        actor = self._actors[name]
        if self._places(name) <= 0:
            return [self._turn(name, entry[1], now, actor.ask_at - now)]
        actor.entries.append(entry)
        self._ids.add(entry[1])
        return []

    def _places(self, name: str) -> int:
        most = max(self._at_once(name), min(MOST, int(self._ahead / self._pace(name))))
        return max(0, most - len(self._actors[name].entries))

    def _turn(self, name: str, id_: uuid.UUID, now: float, soonest: float) -> tuple[uuid.UUID, float]:
        """One pace behind the one that was sent away before it, and behind all that are here."""
        actor, pace = self._actors[name], self._pace(name)
        # Not behind turns that were counted by a limit, or a pace, of long ago.
        before = min(actor.last_turn, now + LONGEST_RETURN)
        actor.last_turn = max(now + max(soonest, len(actor.entries) * pace), before + pace)
        return id_, max(soonest, min(actor.last_turn - now, LONGEST_RETURN * random.uniform(0.5, 1)))

    def clear(self) -> list[uuid.UUID]:
        """Give all of them up; their ids."""
        ids = [id_ for actor in self._actors.values() for _, id_ in actor.entries]
        self._actors.clear()
        self._ids.clear()
        return ids

    def _at_once(self, name: str) -> int:
        return int(self._options(name).get("concurrency") or 1)

    def _pace(self, name: str) -> float:
        """Seconds between two starts when the limit is used to the full."""
        options = self._options(name)
        by_rate = 1 / options["rate"] if options.get("rate") else 0.0
        return max(0.001, by_rate, self._average(name) / self._at_once(name))
