"""Claim-idempotency: the messages that a process has received are claimed together, and acked at the claim's commit.

A message becomes a run only through the claim. What the claim does not return is not ours: acked, not run. While
PostgreSQL is away the deliveries are held and the connection is kept alive: nothing ever runs unclaimed.
"""

from __future__ import annotations

import heapq
import itertools
import time
import uuid
from collections import deque
from collections.abc import Iterable
from typing import Any

import structlog
from dramatiq.broker import Consumer, MessageProxy
from dramatiq.errors import DecodeError
from dramatiq.message import Message
from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from chronos.db import is_passing, pauses
from chronos.engine import tasks
from chronos.engine.tasks import Claimed
from chronos.engine.transports import InboxLost
from chronos.middleware.message_checks import Unknown, check
from chronos.runtime import Runtime

log = structlog.get_logger("chronos.claim")

MOST_PREFETCH = 200
#: All threads busy for so long and nothing may wait in front of them: others should have our messages.
PARK_AFTER = 0.1
#: A limit that says no for longer than this gets its message back through the relay.
LONGEST_HOLD = 1.0
HORIZON = 0.05


class ClaimedMessage(MessageProxy):
    """A run on its way to a thread; Dramatiq calls the actor with the run as its only argument."""

    def __init__(self, message: Message[Any], run: Claimed) -> None:
        super().__init__(message)
        self.run = run
        self.args = (run,)
        self.kwargs: dict[str, Any] = {}


class TickMessage(MessageProxy):
    """A periodiq tick: no task, so nothing to claim; its actor may only submit."""

    def __init__(self, message: Message[Any], tag: int) -> None:
        super().__init__(message)
        self.tag = tag


class ClaimingConsumer(Consumer):
    def __init__(self, runtime: Runtime, broker: Any, queue: str, timeout_ms: int) -> None:
        self.runtime, self.broker, self.queue = runtime, broker, queue
        self.held = runtime.held
        self.timeout = timeout_ms / 1000
        self.inbox = runtime.inbox(queue)
        self._waiting: deque[tuple[int, Message[Any], uuid.UUID]] = deque()
        self._ready: deque[MessageProxy] = deque()
        self._slots: list[tuple[float, int, ClaimedMessage]] = []
        self._count = itertools.count()
        self._ask_at = 0.0
        self._limited = False
        self._wants_waking = False
        self._needed = 1
        self._seconds_per_claim = 0.01
        self.held.on_release(self._on_release)

    def _on_release(self) -> None:
        # Not for every run that ends: only when there is room for a claim that is worth its round trip.
        if self._wants_waking and self.held.room(self.queue) >= self._needed:
            self._wants_waking = False
            if self._limited:
                self._ask_at = 0.0
            self.inbox.wake()

    # -- Dramatiq's side

    def __next__(self) -> MessageProxy | None:
        if self._ready:
            return self._ready.popleft()
        try:
            self._step()
        except InboxLost:
            # Every delivery that we held is RabbitMQ's again; what we had claimed is still ours.
            self._waiting.clear()
        return self._ready.popleft() if self._ready else None

    def ack(self, message: MessageProxy) -> None:
        """The delivery ended at the claim; a tick's ends with its run."""
        if isinstance(message, TickMessage):
            # Ticks are acked when they are taken: losing one costs a minute, and none may come twice.
            return

    nack = ack

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        for message in messages:
            if isinstance(message, ClaimedMessage):
                self.runtime.hand_back(message.run, "its worker stopped before it started")

    def close(self) -> None:
        self.requeue([*self._ready, *(entry[2] for entry in self._slots)])
        self._ready.clear()
        self._slots.clear()
        self.inbox.close()

    # -- one step

    def _step(self) -> None:
        now = time.monotonic()
        while self._slots and self._slots[0][0] <= now:
            self._ready.append(heapq.heappop(self._slots)[2])
        if self._ready:
            return
        ahead, room = self.held.ahead(self.queue), self.held.room(self.queue)
        if room == 0 and ahead == 0 and self.held.busy_for() >= PARK_AFTER:
            self.inbox.give_back([tag for tag, _, _ in self._waiting])
            self._waiting.clear()
            self.inbox.park()
            self._needed, self._wants_waking = 1, True
            self._receive(self.inbox.pump(self._pause(0.05)))
            return
        self.inbox.set_prefetch(max(1, min(MOST_PREFETCH, ahead)))
        blocked = bool(self._waiting) and (room < self._worthwhile(ahead) or now < self._ask_at)
        if blocked or self.held.stopping:
            self._needed, self._wants_waking = self._worthwhile(ahead), True
            wait = self._ask_at - now if now < self._ask_at else 0.05
            self._receive(self.inbox.pump(self._pause(max(0.001, min(wait, 0.05)))))
        elif self._waiting:
            self._receive(self.inbox.fetch(0))
        else:
            self._wants_waking = bool(self._slots)
            self._receive(self.inbox.fetch(self._pause(self.timeout)))
        room = self.held.room(self.queue)
        if self._waiting and room >= self._worthwhile(ahead) and time.monotonic() >= self._ask_at:
            self._claim(room)

    def _worthwhile(self, ahead: int) -> int:
        """Claims cost a round trip each: with quick runs wait until a good batch fits."""
        return max(1, min(len(self._waiting), ahead // 4))

    def _pause(self, wanted: float) -> float:
        if self._slots:
            return max(0.0, min(wanted, self._slots[0][0] - time.monotonic()))
        return wanted

    def _receive(self, deliveries: list[tuple[int, bytes]]) -> None:
        unknown: dict[str, list[uuid.UUID]] = {}
        for tag, body in deliveries:
            try:
                message, contract = check(self.broker, body, self.runtime.settings.max_message_bytes)
            except Unknown as reason:
                unknown.setdefault(str(reason), []).append(reason.task_id)
                self.inbox.ack(tag)
                continue
            except (DecodeError, ValidationError, ValueError, TypeError, KeyError) as error:
                log.warning("a message that is no wake-up of ours", queue=self.queue, error=str(error)[:200])
                self.inbox.reject(tag)
                continue
            if contract is None:
                self.inbox.ack(tag)
                self._ready.append(TickMessage(message, tag))
            else:
                self._waiting.append((tag, message, contract.task_id))
        for why, ids in unknown.items():
            minutes = self.runtime.settings.unknown_actor_minutes
            self._persist(lambda ids=ids, why=why: self._refuse(ids, why, minutes))

    def _refuse(self, ids: list[uuid.UUID], why: str, minutes: float) -> None:
        with self.runtime.database.statement() as connection:
            tasks.refuse(connection, ids, why, minutes)

    def _persist(self, work: Any) -> Any:
        """Repeat through an outage of PostgreSQL, holding the deliveries and pumping the broker's events."""
        for pause in pauses(longest=1.0):
            try:
                return work()
            except DBAPIError as error:
                if not is_passing(error):
                    raise
                if self.held.stopping:
                    return None
                log.warning("PostgreSQL is away, nothing is claimed", queue=self.queue)
            self._receive_raw(self.inbox.pump(pause))
        return None

    def _receive_raw(self, deliveries: list[tuple[int, bytes]]) -> None:
        if deliveries:
            self.inbox.give_back([tag for tag, _ in deliveries])

    # -- the claim

    def _claim(self, room: int) -> None:
        beat = self.runtime.beat
        if beat is None or beat.stale:
            time.sleep(0.05)
            return
        batch = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        by_id = {id_: (tag, message) for tag, message, id_ in batch}
        token = uuid.uuid4()
        self.held.begin_claim(token)
        claimed: list[Claimed] = []
        refused: set[uuid.UUID] = set()
        try:
            started = time.monotonic()
            if self._limited:
                horizon = max(HORIZON, 3 * self._seconds_per_claim)
                answer = self._persist(
                    lambda: tasks.claim_limited(
                        self.runtime.database, self.queue, list(by_id), beat.id, token, horizon
                    )
                )
                if answer is not None:
                    claimed, refused = answer.claimed, set(answer.refused)
                    self._ask_at = time.monotonic() + answer.ask_again if refused else 0.0
            else:
                found = self._persist(
                    lambda: tasks.claim(self.runtime.database, self.queue, list(by_id), beat.id, token)
                )
                claimed = found or []
            self._seconds_per_claim += (time.monotonic() - started - self._seconds_per_claim) * 0.1
        finally:
            self.held.end_claim(token, claimed)
        now = time.monotonic()
        for run in claimed:
            message = ClaimedMessage(by_id[run.id][1], run)
            if run.slot > 0:
                heapq.heappush(self._slots, (now + run.slot, next(self._count), message))
            else:
                self._ready.append(message)
        mine = {run.id for run in claimed}
        missed = [id_ for id_ in by_id if id_ not in mine and id_ not in refused]
        if not missed and not refused and not self._waiting:
            self.inbox.ack(batch[-1][0], multiple=True)
            return
        for tag, _, id_ in batch:
            if id_ in mine:
                self.inbox.ack(tag)
        if missed:
            self._sort_out(missed, by_id)
        if refused:
            held = [entry for entry in batch if entry[2] in refused]
            if self._ask_at - time.monotonic() > LONGEST_HOLD:
                wait = self._ask_at - time.monotonic()
                self._persist(lambda: self._wake([entry[2] for entry in held], wait))
                for tag, _, _ in held:
                    self.inbox.ack(tag)
            else:
                self._waiting.extendleft(reversed(held))

    def _wake(self, ids: list[uuid.UUID], wait: float) -> None:
        with self.runtime.database.statement() as connection:
            tasks.wake(connection, ids, wait)

    def _sort_out(self, missed: list[uuid.UUID], by_id: dict[uuid.UUID, tuple[int, Message[Any]]]) -> None:
        beat = self.runtime.beat
        assert beat is not None  # noqa: S101
        reasons = (
            self._persist(lambda: tasks.why_refused(self.runtime.database, self.queue, missed, beat.id)) or []
        )
        paused = []
        for refusal in reasons:
            tag, message = by_id[refusal.id]
            if refusal.why == "worker dead":
                self.runtime.die("its row says that it is dead")
            elif refusal.why == "no row":
                log.warning("a message without a task", queue=self.queue, task=str(refusal.id))
                self.inbox.reject(tag)
            elif refusal.why == "limited":
                self._limited = True
                self._waiting.append((tag, message, refusal.id))
            else:
                if refusal.why == "paused":
                    paused.append(refusal.id)
                self.inbox.ack(tag)
        if paused:
            self._persist(lambda: self._wake(paused, 0.0))
