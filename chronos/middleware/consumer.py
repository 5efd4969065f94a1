"""Receives wake-ups and claims them in batches; a delivery ends at the commit of its claim.

What the claim does not return is not ours: acked, not run. While PostgreSQL is away the deliveries are held and the
connection is kept alive: nothing ever runs unclaimed.
"""

from __future__ import annotations

import heapq
import itertools
import json
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import structlog
from dramatiq.broker import Consumer, MessageProxy
from dramatiq.message import Message

from chronos.db import DatabaseTrouble, is_passing, pauses
from chronos.engine import tasks
from chronos.engine.tasks import Claimed, Refusal
from chronos.engine.transports import Delivery, InboxLost
from chronos.middleware.claim import ClaimedMessage, TickMessage
from chronos.middleware.dead_letters import dead_letter
from chronos.middleware.message_checks import Unknown, check
from chronos.middleware.rate_limits import LimitQueues
from chronos.runtime import Runtime

log = structlog.get_logger("chronos.claim")

MOST_PREFETCH = 200
#: All threads busy for so long and nothing may wait in front of them: others should have our messages.
PARK_AFTER = 0.1
#: A limit that says no for longer than this gets its message back through the relay.
LONGEST_HOLD = 1.0
#: The same for a limit of the task's own actor: while it is held, others of the queue may wait behind it.
LONGEST_OWN_HOLD = 0.05
#: After a claim of so many, the next one may gather for a moment: a claim of fifty costs what one of five does.
GROUP, GATHER_SECONDS = 8, 0.01
#: Before a task is published again whose row names an actor that this worker does not know.
UNKNOWN_ACTOR_SECONDS = 5.0
#: Seconds between two looks at the connection while messages wait for a thread.
PUMP_SECONDS = 0.05

Waiting = tuple[int, Message[Any], uuid.UUID]


class ClaimingConsumer(Consumer):
    def __init__(self, runtime: Runtime, broker: Any, limits: LimitQueues, queue: str, timeout_ms: int) -> None:
        self.runtime, self.broker, self.limits, self.queue = runtime, broker, limits, queue
        self.held = runtime.held
        self.timeout = timeout_ms / 1000
        self.inbox = runtime.transport.inbox(queue)
        #: Delivered and not claimed, in the order of their tags.
        self._waiting: deque[Waiting] = deque()
        #: Claimed, for Dramatiq to take one by one.
        self._ready: deque[MessageProxy] = deque()
        #: Claimed, to start at a time that a rate limit gave: (time.monotonic(), number, message).
        self._slots: list[tuple[float, int, ClaimedMessage]] = []
        self._numbers = itertools.count()
        self._gather_until = 0.0
        #: A limit said no until then, or until more runs of this queue have ended than when it was asked.
        self._ask_at = 0.0
        self._ends_seen = 0

    # -- Dramatiq's side

    def __next__(self) -> MessageProxy | None:
        if not self._ready:
            try:
                self._step()
            except InboxLost:
                # Every delivery that we held is the broker's again; what we had claimed is still ours.
                self._waiting.clear()
        return self._ready.popleft() if self._ready else None

    def ack(self, message: MessageProxy) -> None:
        """Nothing to do: the delivery ended at the claim (a tick's when it was taken: a lost one costs a minute)."""

    def nack(self, message: MessageProxy) -> None:
        """Its delivery is long acked, so a copy goes to `.XQ` for whoever watches the broker."""
        if isinstance(message, ClaimedMessage):
            self.inbox.bury(json.dumps(dead_letter(message), default=str).encode())

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        for message in messages:
            if isinstance(message, ClaimedMessage):
                self.runtime.hand_back(message.run, "its worker stopped before it started")

    def close(self) -> None:
        self.requeue([*self._ready, *(entry[2] for entry in self._slots)])
        self._ready.clear()
        self._slots.clear()
        self.inbox.close()

    # -- one step: start what is due, else receive, else claim

    def _step(self) -> None:
        now = time.monotonic()
        while self._slots and self._slots[0][0] <= now:
            self._ready.append(heapq.heappop(self._slots)[2])
        if self._ready:
            return
        ahead = self.held.ahead(self.queue)
        if not ahead and self.held.busy_for() >= PARK_AFTER and self.held.room(self.queue) == 0:
            self._park()
        elif self.held.stopping:
            self.held.wait_for_room(self.queue, 1, PUMP_SECONDS)
            self._receive(self.inbox.pump())
        elif not self._waiting:
            self.inbox.set_prefetch(max(1, min(MOST_PREFETCH, ahead)))
            self._receive(self.inbox.fetch(self._until_slot(self.timeout)))
        elif now < self._ask_at:
            wait = self._until_slot(min(PUMP_SECONDS, self._ask_at - now))
            if self.held.wait_for_end(self.queue, self._ends_seen, wait):
                self._ask_at = 0.0
            self._receive(self.inbox.pump())
        elif now < self._gather_until:
            time.sleep(self._until_slot(self._gather_until - now))
            self._receive(self.inbox.fetch(0))
        elif self.held.room(self.queue) < (needed := self._worthwhile(ahead)):
            self.held.wait_for_room(self.queue, needed, self._until_slot(PUMP_SECONDS))
            self._receive(self.inbox.pump())
        else:
            self._claim()

    def _park(self) -> None:
        """Every thread is busy for a while: let others have what we did not claim."""
        self.inbox.give_back([tag for tag, _, _ in self._waiting])
        self._waiting.clear()
        self.inbox.park()
        self.held.wait_for_room(self.queue, 1, self._until_slot(PUMP_SECONDS))
        self._receive(self.inbox.pump())

    def _worthwhile(self, ahead: int) -> int:
        """Claims cost a round trip each: while threads have work, wait until a good batch fits."""
        return 1 if self.held.idle_threads else max(1, min(len(self._waiting), ahead // 4))

    def _until_slot(self, wanted: float) -> float:
        if self._slots:
            return max(0.0, min(wanted, self._slots[0][0] - time.monotonic()))
        return wanted

    def _receive(self, deliveries: list[Delivery]) -> None:
        unknown: dict[str, list[uuid.UUID]] = {}
        for tag, body in deliveries:
            try:
                message, task_id = check(self.broker, self.queue, body, self.runtime.settings.max_message_bytes)
            except Unknown as reason:
                unknown.setdefault(str(reason), []).append(reason.task_id)
                self.inbox.ack(tag)
                continue
            except Exception as error:  # whatever it is: it must not stop the queue
                log.warning("a message that is no wake-up of ours", queue=self.queue, error=str(error)[:200])
                self.inbox.reject(tag)
                continue
            if task_id is None:
                self.inbox.ack(tag)
                self._ready.append(TickMessage(message))
            else:
                self._waiting.append((tag, message, task_id))
        minutes = self.runtime.settings.unknown_actor_minutes
        for why, ids in unknown.items():
            self._persist(partial(self._write, tasks.refuse, ids, why, minutes))

    def _write(self, verb: Callable[..., Any], *arguments: Any) -> Any:
        with self.runtime.loops.statement() as connection:
            return verb(connection, *arguments)

    def _persist(self, work: Callable[[], Any]) -> Any:
        """Repeat through an outage of PostgreSQL, holding the deliveries and keeping the connection alive."""
        for pause in pauses(longest=1.0):
            try:
                return work()
            except DatabaseTrouble as error:
                if not is_passing(error):
                    raise
                if self.held.stopping:
                    return None
                log.warning("PostgreSQL is away, nothing is claimed", queue=self.queue)
            time.sleep(pause)
            self.inbox.give_back([tag for tag, _ in self.inbox.pump()])
        return None

    # -- the claim

    def _claim(self) -> None:
        beat = self.runtime.beat
        if beat is None or beat.stale:
            time.sleep(PUMP_SECONDS)
            self._receive(self.inbox.pump())
            return
        token = uuid.uuid4()
        self._ends_seen = self.held.ends(self.queue)
        batch = [self._waiting.popleft() for _ in range(self.held.begin_claim(self.queue, token, len(self._waiting)))]
        if not batch:
            return
        messages = {id_: message for _, message, id_ in batch}
        claimed: list[Claimed] = []
        refused: dict[uuid.UUID, Refusal] = {}
        try:
            answer = self._persist(lambda: self.limits.claim(self.queue, list(messages), beat.id, token))
            if answer is not None:
                claimed, refused = answer.claimed, answer.refused
        finally:
            self.held.end_claim(token, claimed)
        now = time.monotonic()
        for run in claimed:
            ready = ClaimedMessage(messages[run.id], run)
            if run.task_name not in self.broker.actors:
                # Its message named another actor than its row.
                self.runtime.hand_back(run, f"no actor {run.task_name!r} in this worker", wait=UNKNOWN_ACTOR_SECONDS)
            elif run.slot > 0:
                heapq.heappush(self._slots, (now + run.slot, next(self._numbers), ready))
            else:
                self._ready.append(ready)
        if len(claimed) >= GROUP:
            self._gather_until = now + GATHER_SECONDS
        if len(claimed) == len(messages):
            # The batch was the oldest that we held, so this acks nothing else.
            self.inbox.ack(batch[-1][0], multiple=True)
            return
        mine = {run.id for run in claimed}
        for tag, _, id_ in batch:
            if id_ in mine:
                self.inbox.ack(tag)
        self._sort_out([entry for entry in batch if entry[2] not in mine and entry[2] not in refused])
        self._hold([entry for entry in batch if entry[2] in refused], refused)

    def _hold(self, entries: list[Waiting], refused: dict[uuid.UUID, Refusal]) -> None:
        """What its queue's limit refuses keeps its delivery and asks again soon.

        What has to wait for long goes back through the relay, so that the others of the queue may pass.
        """
        if not entries:
            return
        waits = {id_: self.limits.ask_again(self.queue, refusal) for id_, refusal in refused.items()}
        kept: list[Waiting] = []
        returned: list[Waiting] = []
        for entry in entries:
            keep = waits[entry[2]] <= (LONGEST_OWN_HOLD if refused[entry[2]].own else LONGEST_HOLD)
            (kept if keep else returned).append(entry)
        self._waiting.extendleft(reversed(kept))
        self._ask_at = time.monotonic() + min((waits[id_] for _, _, id_ in kept), default=0.0)
        for wait in {waits[id_] for _, _, id_ in returned}:
            ids = [id_ for _, _, id_ in returned if waits[id_] == wait]
            self._persist(partial(self._write, tasks.wake, ids, wait))
        for tag, _, _ in returned:
            self.inbox.ack(tag)

    def _sort_out(self, missed: list[Waiting]) -> None:
        """Why the claim did not return them, and what becomes of their messages."""
        beat = self.runtime.beat
        if not missed or beat is None:
            return
        ids = [entry[2] for entry in missed]
        why = self._persist(lambda: self._write(tasks.why_refused, self.queue, ids, beat.id)) or {}
        paused = []
        for tag, message, id_ in missed:
            match why.get(id_):
                case None:
                    # No answer: we stop while PostgreSQL is away. Unacked messages return to the broker.
                    self._waiting.append((tag, message, id_))
                case "worker dead":
                    self.runtime.die("its row says that it is dead")
                case "no row":
                    log.warning("a message without a task", queue=self.queue, task=str(id_))
                    self.inbox.reject(tag)
                case "paused":
                    paused.append(id_)
                    self.inbox.ack(tag)
                case _:
                    self.inbox.ack(tag)
        if paused:
            self._persist(lambda: self._write(tasks.wake, paused))
