"""Faults on order: which calls are to go wrong, and how. Orders live in memory: a restart clears them."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from telegram_sandbox.errors import SandboxError

#: Kind -> whether the request is carried out (the message stored) unless the order says otherwise.
KINDS = {
    "429": False,
    "500": False,
    "502": False,  # with an HTML page, as from a proxy
    "cut": True,  # an answer of which half the JSON is missing
    "reset_before": False,
    "reset_after": True,
    "slow": False,  # carried out after the delay; stored=true: carried out at once, answered after the delay
    "hang": False,  # never answered
}
WISHES = "kind kinds next percent method methods chat chats bot bots seconds retry_after scope stored seed"

#: Stored by their nature, or never.
FIXED = {"429", "reset_before", "reset_after"}


@dataclass
class Order:
    id: int
    kinds: list[str]
    #: Calls still to go wrong; None: no end.
    left: int | None
    percent: float | None
    methods: list[str]
    chats: list[int | str]
    bots: list[int]
    seconds: float
    retry_after: int
    #: For 429: who must wait, "chat" or "bot".
    scope: str
    stored: bool | None
    seed: int
    hits: int = 0
    _random: random.Random = field(default_factory=random.Random, repr=False)

    def wants(self, method: str, chats: tuple[int | str | None, ...], bot: int) -> bool:
        if self.methods:
            if not any(fnmatchcase(method.lower(), pattern.lower()) for pattern in self.methods):
                return False
        elif method.lower() == "getupdates":
            # Whoever wants faults in the polling says so: otherwise it would eat "the next 3 calls".
            return False
        if self.chats and not any(chat in self.chats for chat in chats if chat is not None):
            return False
        return not self.bots or bot in self.bots


@dataclass(frozen=True)
class Fault:
    kind: str
    seconds: float
    retry_after: int
    scope: str
    stored: bool


class Faults:
    def __init__(self) -> None:
        self.orders: list[Order] = []
        self._last = 0

    def draw(self, method: str, chats: tuple[int | str | None, ...], bot: int) -> Fault | None:
        for order in self.orders:
            if not order.wants(method, chats, bot):
                continue
            if order.percent is not None and order._random.random() * 100 >= order.percent:
                continue
            order.hits += 1
            if order.left is not None:
                order.left -= 1
                if order.left <= 0:
                    self.orders.remove(order)
            kind = order.kinds[0] if len(order.kinds) == 1 else order._random.choice(order.kinds)
            stored = KINDS[kind] if order.stored is None or kind in FIXED else order.stored
            return Fault(kind, order.seconds, order.retry_after, order.scope, stored)
        return None

    def order(self, wish: dict[str, Any]) -> Order:
        known = WISHES.split()
        if unknown := sorted(set(wish) - set(known)):
            raise SandboxError(f"a fault has no {unknown[0]!r}; it has {', '.join(known)}")
        kinds = [str(kind) for kind in _list(wish, "kind", "kinds")]
        if not kinds or any(kind not in KINDS for kind in kinds):
            raise SandboxError(f"choose the kind of the fault: one or more of {', '.join(KINDS)}")
        left, percent = wish.get("next"), wish.get("percent")
        if left is None and percent is None:
            left = 1
        if left is not None and (not isinstance(left, int) or left < 1):
            raise SandboxError("next is the number of calls that go wrong: 1 or more")
        if percent is not None and (not isinstance(percent, int | float) or not 0 < percent <= 100):
            raise SandboxError("percent is above 0 and at most 100")
        numbers = {"seconds": wish.get("seconds", 2.0), "retry_after": wish.get("retry_after", 1)}
        for name, number in numbers.items():
            if not isinstance(number, int | float) or number < 0:
                raise SandboxError(f"{name} is a number of seconds")
        if wish.get("scope", "chat") not in ("chat", "bot"):
            raise SandboxError("scope is chat or bot: who must wait after the 429")
        self._last += 1
        seed = int(wish.get("seed", 0))
        order = Order(
            id=self._last,
            kinds=kinds,
            left=left,
            percent=percent,
            methods=[str(method) for method in _list(wish, "method", "methods")],
            chats=_list(wish, "chat", "chats"),
            bots=_list(wish, "bot", "bots"),
            seconds=float(numbers["seconds"]),
            retry_after=int(numbers["retry_after"]),
            scope=wish.get("scope", "chat"),
            stored=wish.get("stored"),
            seed=seed,
            _random=random.Random(seed),
        )
        self.orders.append(order)
        return order

    def clear(self, id_: int | None = None) -> int:
        """How many orders were taken back; None: all."""
        kept = [order for order in self.orders if id_ is not None and order.id != id_]
        gone = len(self.orders) - len(kept)
        self.orders = kept
        return gone


def shown(order: Order) -> dict[str, Any]:
    return {key: value for key, value in asdict(order).items() if key != "_random"}


def _list(wish: dict[str, Any], one: str, many: str) -> list[Any]:
    value = wish.get(many, wish.get(one))
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
