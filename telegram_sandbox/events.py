"""What changes, for those who look: the chat page and whoever waits for an answer."""

from __future__ import annotations

import asyncio
from collections import deque

from telegram_sandbox.errors import Json

#: Events kept for a page that was away for a moment.
KEPT = 5_000


class Events:
    def __init__(self, last: int = 0) -> None:
        self.last = last
        self._kept: deque[Json] = deque(maxlen=KEPT)
        self._first = last
        self._waiting: set[asyncio.Future[None]] = set()

    def next(self) -> int:
        return self.last + 1

    def publish(self, kind: str, **facts: object) -> None:
        self.last += 1
        if len(self._kept) == KEPT:
            self._first = self._kept[0]["seq"]
        self._kept.append({"seq": self.last, "kind": kind, **facts})
        if self._waiting:
            waiting, self._waiting = self._waiting, set()
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    def after(self, seq: int) -> list[Json] | None:
        """None: some are no longer known; look at the whole again."""
        if seq < self._first or seq > self.last:
            return None
        found = []
        for event in reversed(self._kept):
            if event["seq"] <= seq:
                break
            found.append(event)
        return found[::-1]

    async def change(self, seconds: float) -> None:
        """Until something is published, or the time is over."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(future)
