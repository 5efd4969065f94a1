"""When a process lets the places go that it has under a limit.

Who has one asks for the next in the moment that a run ends, before anybody else can: left alone, it would keep it for
as long as it has work, and what the others hold would wait.
"""

from __future__ import annotations

#: A place is kept for so many seconds, or for so many runs if they take longer, ...
KEEP_SECONDS, KEEP_RUNS = 1.0, 20
#: ... and then let go for about as long as it takes the others to ask again.
LET_GO_SECONDS, LET_GO_RUNS = 0.015, 0.3


class Sharing:
    """All clocks are time.monotonic()."""

    def __init__(self) -> None:
        self._let_go_at: float | None = None
        #: Until then this process asks for nothing under a limit.
        self.asks_again_at = 0.0

    def refused(self, now: float, run_seconds: float) -> None:
        """A limit has refused something here: somebody, perhaps we, has all its places."""
        if self._let_go_at is not None and now < self._let_go_at:
            return
        if self._let_go_at is not None:
            self.asks_again_at = now + max(LET_GO_SECONDS, LET_GO_RUNS * run_seconds)
        self._let_go_at = now + max(KEEP_SECONDS, KEEP_RUNS * run_seconds)
