"""Which of the waiting tasks may start under the limits of their queue and actor, and when. A pure rule, no I/O."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class LimitState:
    """One limit as the claim sees it under its lock. `ahead`: seconds from now to its next free slot."""

    key: str
    task_name: str | None
    step: float | None
    ahead: float
    max_running: int | None
    running: int

    def offer(self, horizon: float) -> float | None:
        """Seconds until the next start that this limit allows within the horizon; None: not now."""
        if self.max_running is not None and self.running >= self.max_running:
            return None
        slot = max(0.0, self.ahead) if self.step is not None else 0.0
        return slot if slot <= horizon else None

    def take(self, slot: float) -> None:
        self.running += 1
        if self.step is not None:
            self.ahead = max(slot, self.ahead) + self.step


def grant(
    limits: Sequence[LimitState], candidates: Sequence[tuple[uuid.UUID, str]], horizon: float
) -> list[tuple[uuid.UUID, float]]:
    """Which of the candidates may start, and in how many seconds: every limit that applies must allow it."""
    granted = []
    for id_, name in candidates:
        mine = [limit for limit in limits if limit.task_name in (None, name)]
        slot = 0.0
        for limit in mine:
            offered = limit.offer(horizon)
            if offered is None:
                break
            slot = max(slot, offered)
        else:
            for limit in mine:
                limit.take(slot)
            granted.append((id_, slot))
    return granted


def ask_again(limits: Sequence[LimitState], horizon: float) -> float:
    """Seconds after which a refused task should ask again, unless a run of this process ends before."""
    full = any(limit.max_running is not None and limit.running >= limit.max_running for limit in limits)
    slots = [limit.ahead - horizon / 2 for limit in limits if limit.step is not None]
    return max([0.05 if full else 0.005, *slots])
