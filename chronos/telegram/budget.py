"""The bot's budget, shared by all processes: no call leaves without a slot, none inside a hold.

The truth is in PostgreSQL, by its clock: a GCRA row for the bot and one for each chat (migration 0004). What the calls
of one process ask for at the same time goes in one statement; the later slots of a batch are waited for here. A slot
that is not used in time is lost: calls that were delayed together must not arrive together.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import structlog
from sqlalchemy import text

from chronos.db import Database, DatabaseTrouble, is_passing
from chronos.errors import Later, Unavailable, one_line
from chronos.telegram.reasons import later
from chronos.telegram.urgency import REPLY, URGENCIES, Urgency

log = structlog.get_logger("chronos.telegram")

Counts = Literal["send", "edit", "nothing"]

#: Seconds between two messages. Telegram allows a bot 30/s, a paying one 1,000/s, a chat 1/s with bursts of 3, a group
#: 20 in a minute. A tenth less, and in a group 6 at once and then 13 a minute, so that what leaves in time and is late
#: on its way still arrives within the limits.
RATES = {
    "unpaid": 1 / 27,
    "paid": 1 / 900,
    "chat": {"step": 1.1, "burst": 3},
    "group": {"step": 4.6, "burst": 6},
}
#: Seconds for which a slot is good; a tenth of the second in which Telegram counts.
SLOT_GOOD = 0.1
#: Seconds; what was asked longer ago is asked again before a call leaves: another process may have met a 429.
FRESH = 0.01
#: Seconds; and when this process was kept from running for so long since it asked, it asks once more. With each try
#: so much more is allowed, or nothing would ever leave a machine that is too slow.
LONGEST_CHECK = 0.03
#: Seconds that a hold lasts longer than Telegram asked for.
HOLD_MARGIN = 0.1
#: Asks of one statement; after a group of so many the next one may gather for a moment.
BATCH, GROUP, GATHER_SECONDS = 64, 8, 0.005
#: While PostgreSQL is away the one process that polls still answers people, at this pace.
ALONE_STEP, ALONE_CHAT_STEP = 0.1, 1.1
#: Seconds without a try after PostgreSQL was found away.
AWAY_SECONDS = 1.0

_TAKE = text("select take_slots(:bot, :paid, cast(:rates as jsonb), cast(:asks as jsonb))")
_HOLD = text("select hold_budget(:bot, :chat, :seconds, :step)")
# All other processes must see a hold at once, the disk may take its time: a commit that waits for all before it.
_UNTIL_ON_DISK = text("select pg_logical_emit_message(true, 'chronos', '')")


@dataclass
class Ask:
    """One call that wants to leave."""

    chat: int | str | None
    counts: Counts
    urgency: Urgency
    size: int = 1  #: messages that it makes at once (albums)
    unpaid: bool = False  #: what nobody can pay for: edits
    place: tuple[int, int] = (0, 0)
    answer: asyncio.Future[dict[str, Any]] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def facts(self) -> dict[str, Any]:
        return {
            "chat": None if self.chat is None else str(self.chat),
            "counts": self.counts,
            "size": self.size,
            "unpaid": self.unpaid,
            "tolerance": self.urgency.tolerance,
        }


@dataclass
class Passage:
    """Leave to make one call, at once."""

    chat: int | str | None
    slot: float  #: moment of the loop's clock
    slot_at: float  #: the same by PostgreSQL's clock, seconds since 1970; 0: granted without it
    checked: float  #: when it was asked whether there is a hold, by the same clock
    holds: int  #: 429s that this process had met then
    moved: int | None = None  #: the chat's id by now
    looks: int = 1  #: how often it was asked for this call


class BotStopped(Later):
    """Telegram refuses the bot's token: its tasks stay pending until somebody puts that right."""

    def __init__(self) -> None:
        super().__init__(60.0, later("stopped", 0).why)
        self.reason = "stopped"


class Budget:
    """One bot's budget in one process; its calls come from one event loop."""

    def __init__(self, database: Database, bot_id: int, *, paid: bool = False) -> None:
        self._database, self._bot, self._paid = database, bot_id, paid
        # One thread and one connection of its own: actors that hold every other cannot keep a call waiting.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="budget")
        self._asks: list[Ask] = []
        self._serving: asyncio.Task[None] | None = None
        self._numbers = itertools.count()
        self._holds = 0
        self._away_until = 0.0
        self._alone: dict[int | str | None, float] = {}  #: the next free slot here while PostgreSQL is away
        self._held_here: dict[int | str | None, float] = {}  #: holds that this process has met, for the same time

    async def admit(
        self,
        chat: int | str | None,
        counts: Counts,
        urgency: Urgency,
        ends: float,
        *,
        size: int = 1,
        unpaid: bool = False,
    ) -> Passage:
        """Wait for a slot until `ends` (of the loop's clock), at most; Later says when to come again.

        Before the call leaves `is_good` must say so: what the slot was given for may have changed.
        """
        clock = asyncio.get_running_loop().time
        place = (URGENCIES.index(urgency), next(self._numbers))
        moved: int | None = None
        while True:
            if clock() > ends + SLOT_GOOD:
                raise later("budget", random.random())
            holds = self._holds
            answer = await self._ask(Ask(chat, counts, urgency, size, unpaid, place))
            if "moved" in answer:
                chat = moved = answer["moved"]
                continue
            if "stopped" in answer:
                raise BotStopped
            if "wait" not in answer:
                await self._wait_or_refuse(answer, ends)
                continue
            slot = answer["answered"] + answer["wait"]
            passage = Passage(chat, slot, answer.get("slot", 0.0), answer["asked"], holds, moved)
            if slot > clock():
                await asyncio.sleep(slot - clock())
            return passage

    async def _wait_or_refuse(self, answer: dict[str, Any], ends: float) -> None:
        seconds = float(answer.get("held", answer.get("again", 0.0)))
        if asyncio.get_running_loop().time() + seconds > ends:
            # Spread, so that what was refused together does not come back together.
            reason = "busy" if "held" in answer else "chat limit" if answer.get("why") == "chat" else "budget"
            raise later(reason, seconds + random.random() * min(1.0, 0.1 + seconds))
        await asyncio.sleep(seconds + random.random() * 0.002)

    async def is_good(self, passage: Passage, urgency: Urgency) -> bool:
        """Whether the call may leave now; False: it needs another slot."""
        clock = asyncio.get_running_loop().time
        if clock() > passage.slot + SLOT_GOOD:
            return False
        if passage.holds == self._holds and clock() - passage.checked <= FRESH:
            return True
        holds = self._holds
        place = (-1, next(self._numbers))  # it leaves now: it goes before all that only want a slot
        answer = await self._ask(Ask(passage.chat, "nothing", urgency, place=place))
        if "wait" not in answer:
            return False
        passage.checked, passage.holds, passage.looks = answer["asked"], holds, passage.looks + 1
        return self.can_leave(passage) and clock() <= passage.slot + SLOT_GOOD

    async def hold(self, chat: int | str | None, seconds: float) -> None:
        """Telegram said 429: nothing in its scope leaves before it is over, from any process."""
        # Slots of this process that have not left yet are asked for again, and the one thread asks after it has told.
        self._holds += 1
        loop = asyncio.get_running_loop()
        self._held_here[chat] = self._held_here[None] = loop.time() + seconds + HOLD_MARGIN
        try:
            bot = await loop.run_in_executor(self._thread, self._write_hold, chat, seconds + HOLD_MARGIN)
        except (Unavailable, *DatabaseTrouble) as error:
            log.warning("a hold could not be written", chat=chat, seconds=seconds, error=one_line(error))
            return
        if not bot:
            self._held_here.pop(None, None)
        log.warning("Telegram asks to wait", bot=self._bot, chat=chat, seconds=seconds, whole_bot=bool(bot))

    def can_leave(self, passage: Passage) -> bool:
        """The last look, right before the socket: this process may have been kept from running since."""
        age = asyncio.get_running_loop().time() - passage.checked
        return passage.holds == self._holds and age <= LONGEST_CHECK * passage.looks

    def _write_hold(self, chat: int | str | None, seconds: float) -> float:
        def write() -> float:
            with self._database.statement() as connection:
                facts = {
                    "bot": self._bot,
                    "chat": None if chat is None else str(chat),
                    "seconds": seconds,
                    "step": ALONE_CHAT_STEP,
                }
                seconds_of_bot = float(connection.execute(_HOLD, facts).scalar_one())
                connection.execute(_UNTIL_ON_DISK)
                return seconds_of_bot

        return self._database.persist(write, deadline=seconds)

    # -- asking, many at once

    async def _ask(self, ask: Ask) -> dict[str, Any]:
        self._asks.append(ask)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve())
        return await ask.answer

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while self._asks:
            self._asks.sort(key=lambda ask: ask.place)
            batch, self._asks = self._asks[:BATCH], self._asks[BATCH:]
            batch = [ask for ask in batch if not ask.answer.done()]
            if not batch:
                continue
            holds = self._holds
            if loop.time() < self._away_until:
                self._answer_alone(batch, None)
                continue
            try:
                asked, answered, answers = await loop.run_in_executor(
                    self._thread, self._take, [ask.facts() for ask in batch]
                )
            except DatabaseTrouble as error:
                if is_passing(error):
                    self._away_until = loop.time() + AWAY_SECONDS
                    self._answer_alone(batch, error)
                else:
                    _fail(batch, error)
                continue
            except BaseException as error:
                _fail([*batch, *self._asks], error)
                raise
            for ask, answer in zip(batch, answers, strict=True):
                if ask.answer.done():
                    continue
                # Granted before this process met a 429 that the statement could not see.
                stale = "wait" in answer and holds != self._holds
                ask.answer.set_result({"again": 0.0} if stale else {**answer, "asked": asked, "answered": answered})
            if len(batch) >= GROUP:
                await asyncio.sleep(GATHER_SECONDS)

    def _take(self, asks: list[dict[str, Any]]) -> tuple[float, float, list[dict[str, Any]]]:
        """When it was asked and answered, by the loop's clock, and the answers: the loop itself may look late."""
        facts = {"bot": self._bot, "paid": self._paid, "rates": json.dumps(RATES), "asks": json.dumps(asks)}
        with self._database.statement() as connection:
            asked = time.monotonic()
            answers: list[dict[str, Any]] = connection.execute(_TAKE, facts).scalar_one()
            return asked, time.monotonic(), answers

    def _answer_alone(self, batch: list[Ask], error: BaseException | None) -> None:
        """PostgreSQL is away: people are still answered, slowly, and everything else waits for it."""
        now = asyncio.get_running_loop().time()
        for ask in batch:
            if ask.answer.done():
                continue
            if ask.urgency is not REPLY:
                ask.answer.set_exception(later("database", AWAY_SECONDS + random.random()))
                continue
            held = max(self._held_here.get(ask.chat, 0.0), self._held_here.get(None, 0.0)) - now
            if held > 0:
                ask.answer.set_result({"held": held})
                continue
            keys: list[tuple[int | str | None, float]] = [(None, ALONE_STEP)]
            if ask.counts == "send" and ask.chat is not None:
                keys.append((ask.chat, ALONE_CHAT_STEP))
            start = max([now, *(self._alone.get(key, 0.0) for key, _ in keys)]) if ask.counts != "nothing" else now
            if start - now > ask.urgency.tolerance:
                ask.answer.set_result({"again": start - now - ask.urgency.tolerance})
                continue
            if ask.counts != "nothing":
                self._alone.update({key: start + step for key, step in keys})
            ask.answer.set_result({"wait": start - now, "asked": now, "answered": now})

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._database.close()


def _fail(asks: list[Ask], error: BaseException) -> None:
    for ask in asks:
        if not ask.answer.done():
            ask.answer.set_exception(error if isinstance(error, Exception) else RuntimeError("the budget was ended"))
