"""Telegram's rates as buckets that refill steadily; what overflows is refused and must wait.

A call that comes although it was told to wait is marked: it is what a good sender never does.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from telegram_sandbox.errors import SandboxError

#: Methods that create messages; each takes a place in the bot's bucket and in its chat's.
SENDS = frozenset({"sendmessage", "sendphoto", "senddocument", "copymessage", "forwardmessage"})
EDITS = frozenset({"editmessagetext", "editmessagecaption", "editmessagemedia", "editmessagereplymarkup"})


@dataclass(frozen=True)
class Limit:
    #: So many calls in so many seconds, and so many at once after a rest.
    amount: float
    seconds: float
    burst: float


LIMITS = {
    "bot": Limit(30, 1, 30),
    "paid": Limit(1000, 1, 1000),
    "private": Limit(1, 1, 3),
    "channel": Limit(1, 1, 3),
    "group": Limit(20, 60, 20),
    "group_edits": Limit(20, 60, 20),
}


@dataclass(slots=True)
class _Bucket:
    content: float
    at: float


@dataclass(frozen=True)
class Refusal:
    retry_after: int
    scope: str
    #: It had been told to wait, and the time was not over.
    inside: bool


@dataclass
class Rates:
    limits: dict[str, Limit] = field(default_factory=lambda: dict(LIMITS))
    enabled: bool = True
    _buckets: dict[tuple[str, object], _Bucket] = field(default_factory=dict)
    #: Until when (monotonic seconds) a bot, a bot's chat, or a method of a bot there must wait.
    _holds: dict[tuple[int, int | None, str | None], float] = field(default_factory=dict)

    def take(self, bot: int, method: str, chat: int | None, kind: str | None, paid: bool, now: float) -> Refusal | None:
        """kind: private, group, supergroup or channel; None: a chat that there is not."""
        counts = method in SENDS or method in EDITS
        if self._holds:
            common = ((bot, None, None), (bot, chat, None)) if counts else ()
            for scope in (*common, (bot, None, method), (bot, chat, method)):
                until = self._holds.get(scope)
                if until is not None:
                    if now < until:
                        return Refusal(math.ceil(until - now), "bot" if scope[1] is None else "chat", True)
                    del self._holds[scope]
        if not counts or not self.enabled:
            return None
        asked: list[tuple[str, object]] = [("paid" if paid else "bot", bot)]
        if kind is not None:
            group = kind in ("group", "supergroup")
            if method in SENDS:
                asked.append(("group" if group else kind, (bot, chat)))
            elif group:
                asked.append(("group_edits", (bot, chat)))
        for name, key in asked:
            limit = self.limits[name]
            content = self._content(name, key, limit, now)
            if content + 1 > limit.burst + 1e-9:
                wait = max(1, math.ceil((content + 1 - limit.burst) * limit.seconds / limit.amount))
                whole_bot = name in ("bot", "paid")
                self._holds[(bot, None if whole_bot else chat, None)] = now + wait
                return Refusal(wait, "bot" if whole_bot else "chat", False)
        for name, key in asked:
            self._buckets[(name, key)].content += 1
        return None

    def hold(self, bot: int, chat: int | None, method: str, seconds: float, now: float) -> None:
        """After an ordered 429: sends and edits wait together, other methods alone. chat None: the whole bot."""
        scope = (bot, chat, None if method in SENDS or method in EDITS else method)
        self._holds[scope] = max(now + seconds, self._holds.get(scope, 0.0))

    def _content(self, name: str, key: object, limit: Limit, now: float) -> float:
        bucket = self._buckets.get((name, key))
        if bucket is None:
            bucket = self._buckets[(name, key)] = _Bucket(0.0, now)
        bucket.content = max(0.0, bucket.content - (now - bucket.at) * limit.amount / limit.seconds)
        bucket.at = now
        return bucket.content

    def change(self, wish: dict[str, Any]) -> None:
        """{"enabled": false} or {"private": {"amount": 2, "seconds": 1, "burst": 5}}, all parts optional."""
        changed = dict(self.limits)
        for name, value in wish.items():
            if name == "enabled":
                continue
            if name not in changed or not isinstance(value, dict) or set(value) - {"amount", "seconds", "burst"}:
                raise SandboxError(
                    f"there is no limit {name!r} of this form: choose enabled or one of {', '.join(LIMITS)},"
                    ' each like {"amount": 20, "seconds": 60, "burst": 20}'
                )
            if not all(isinstance(number, int | float) and number > 0 for number in value.values()):
                raise SandboxError(f"the numbers of the limit {name} must be above 0")
            changed[name] = replace(changed[name], **value)
        self.limits = changed
        self.enabled = bool(wish.get("enabled", self.enabled))
        self._buckets.clear()
        self._holds.clear()

    def shown(self) -> dict[str, Any]:
        return {"enabled": self.enabled, **{name: asdict(limit) for name, limit in self.limits.items()}}
