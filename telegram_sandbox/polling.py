"""getUpdates: long polling, confirmation by offset, and one poller per bot: the newer one ends the older one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from telegram_sandbox.errors import ApiError, Json, bad_request, conflict
from telegram_sandbox.parameters import Parameters
from telegram_sandbox.world import World

#: Seconds.
LONGEST = 50
MOST_UPDATES = 100
TAKEN_OVER = "terminated by other getUpdates request; make sure that only one bot instance is running"


class Polling:
    def __init__(self, world: World) -> None:
        self.world = world
        self._waiting: dict[int, asyncio.Future[None]] = {}
        world.on_update = self._wake

    def polled_by_somebody(self, bot: int) -> bool:
        return bot in self._waiting

    async def updates(self, bot: int, parameters: Parameters, commit: Callable[[], None]) -> list[Json]:
        self._take_over(bot)
        limit = parameters.integer("limit", MOST_UPDATES)
        limit = limit if 1 <= limit <= MOST_UPDATES else MOST_UPDATES
        ends = asyncio.get_running_loop().time() + min(max(0, parameters.integer("timeout")), LONGEST)
        self._remember_allowed(bot, parameters)
        offset = parameters.integer("offset")
        if offset < 0:
            known = sorted(self.world.updates.get(bot, {}))
            offset = known[max(0, len(known) + offset)] if known else 0
        self.world.confirm(bot, offset)
        commit()
        while True:
            waiting = self.world.updates.get(bot, {})
            if waiting:
                return [waiting[id_] for id_ in sorted(waiting) if id_ >= offset][:limit]
            left = ends - asyncio.get_running_loop().time()
            if left <= 0:
                return []
            await self._wait(bot, left)

    async def _wait(self, bot: int, seconds: float) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[bot] = future
        try:
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            pass
        finally:
            if self._waiting.get(bot) is future:
                del self._waiting[bot]

    def _take_over(self, bot: int) -> None:
        older = self._waiting.pop(bot, None)
        if older is not None and not older.done():
            older.set_exception(conflict(TAKEN_OVER))

    def _wake(self, bot: int) -> None:
        future = self._waiting.get(bot)
        if future is not None and not future.done():
            future.set_result(None)

    def _remember_allowed(self, bot: int, parameters: Parameters) -> None:
        """Of updates from now on; what waits already stays."""
        allowed = parameters.json("allowed_updates", "can't parse allowed_updates JSON object")
        if allowed is None:
            return
        if not isinstance(allowed, list):
            raise bad_request("expected an Array of String as allowed_updates")
        facts = self.world.bots[bot]
        if facts.get("allowed_updates", []) != allowed:
            self.world.put({**facts, "allowed_updates": allowed}, "bots", bot)


def webhook(name: str, parameters: Parameters, waiting: int) -> Json | bool:
    """There are no webhooks here; what programs ask before they poll is answered."""
    if name == "getwebhookinfo":
        return {"url": "", "has_custom_certificate": False, "pending_update_count": waiting}
    if name == "setwebhook" and parameters.text("url"):
        raise ApiError(400, "Bad Request: bad webhook: the sandbox has no webhooks, use getUpdates")
    return True
