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
from chronos.engine.tasks import Claimed, LimitedClaim, Refusal
from chronos.engine.transports import Delivery, InboxLost
from chronos.middleware.aside import Aside
from chronos.middleware.claim import ClaimedMessage, TickMessage
from chronos.middleware.dead_letters import dead_letter
from chronos.middleware.message_checks import Unknown, check
from chronos.middleware.rate_limits import LimitQueues
from chronos.middleware.sharing import Sharing
from chronos.runtime import Runtime

log = structlog.get_logger("chronos.claim")

MOST_PREFETCH = 200
#: All threads busy for so long and nothing may wait in front of them: others should have our messages.
PARK_AFTER = 0.1
#: A limit that says no for longer than this gets its message back through the relay.
LONGEST_HOLD = 1.0
#: After a claim of so many, the next one may gather for a moment: a claim of fifty costs what one of five does.
GROUP, GATHER_SECONDS = 8, 0.01
#: Before a task is published again whose row names an actor that this worker does not know.
UNKNOWN_ACTOR_SECONDS = 5.0
#: Seconds between two looks at the connection while messages wait for a thread.
PUMP_SECONDS = 0.05

#: Delivery tag (0: acked long ago), message, and the task that it wakes.
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
        #: What the limits of their own actors refuse.
        self._aside = Aside(lambda name: broker.actors[name].options, self.held.average_of, runtime.settings.lease)
        self._asides_turn = False
        #: The queue's limit said no until then, or until more of its runs have ended here than when it was asked.
        self._ask_at = 0.0
        self._ends_seen = 0
        self._sharing = Sharing()

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
        self._want_endings(False)
        self.requeue([*self._ready, *(entry[2] for entry in self._slots)])
        self._ready.clear()
        self._slots.clear()
        self._give_up_aside()
        self.inbox.close()

    # -- one step: start what is due, else receive, else claim

    def _step(self) -> None:
        now = time.monotonic()
        while self._slots and self._slots[0][0] <= now:
            self._ready.append(heapq.heappop(self._slots)[2])
        if self._ready:
            return
        ahead = self.held.ahead(self.queue)
        asking = bool(self._waiting or self._aside) and self.held.room(self.queue) > 0
        self._want_endings(asking and self.limits.apply_to(self.queue) and now >= self._sharing.asks_again_at)
        if not ahead and self.held.busy_for() >= PARK_AFTER and self.held.room(self.queue) == 0:
            self._park()
        elif self.held.stopping:
            self.held.wait_for_room(self.queue, 1, PUMP_SECONDS)
            self._receive(self.inbox.pump())
        elif not self._waiting and not self._asks(now):
            self.inbox.set_prefetch(max(1, min(MOST_PREFETCH, ahead)))
            if self._aside:
                # Neither a delivery nor the end of a run may wait for the other.
                wait = self._until_slot(min(PUMP_SECONDS, max(self._aside.ask_at, self._sharing.asks_again_at) - now))
                if now < self._sharing.asks_again_at:
                    time.sleep(wait)
                else:
                    self.held.wait_for_end(self.queue, self._ends_seen, wait)
                self._receive(self.inbox.fetch(0))
            else:
                self._receive(self.inbox.fetch(self._until_slot(self.timeout)))
        elif now < self._ask_at:
            wait = self._until_slot(min(PUMP_SECONDS, self._ask_at - now))
            if now < self._sharing.asks_again_at:
                time.sleep(wait)
            elif self.held.wait_for_end(self.queue, self._ends_seen, wait):
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
        self._give_up_aside()
        self.inbox.park()
        self.held.wait_for_room(self.queue, 1, self._until_slot(PUMP_SECONDS))
        self._receive(self.inbox.pump())

    def _asks(self, now: float) -> int:
        return self._aside.asks(now, self._ends) if self._aside and now >= self._sharing.asks_again_at else 0

    @property
    def _ends(self) -> int:
        """Runs of this queue that have ended here since the last claim."""
        return self.held.ends_since(self.queue, self._ends_seen)

    def _want_endings(self, wanted: bool) -> None:
        """A completion that the next claim can write frees its place a round trip earlier than the finisher could."""
        for ending in self.held.want_endings(self.queue, wanted):
            self.runtime.finish(ending)

    def _give_up_aside(self) -> None:
        if ids := self._aside.clear():
            self._persist(partial(self._write, tasks.wake, ids))

    def _worthwhile(self, ahead: int) -> int:
        """Claims cost a round trip each: while threads have work, wait until a good batch fits."""
        return 1 if self.held.idle_threads else max(1, min(len(self._waiting), ahead // 4))

    def _until_slot(self, wanted: float) -> float:
        if self._slots:
            return max(0.0, min(wanted, self._slots[0][0] - time.monotonic()))
        return wanted

    def _receive(self, deliveries: list[Delivery]) -> None:
        unknown: dict[str, list[uuid.UUID]] = {}
        returned: list[tuple[uuid.UUID, float]] = []
        done: list[int] = []
        now = time.monotonic()
        for tag, body in deliveries:
            try:
                message, task_id = check(self.broker, self.queue, body, self.runtime.settings.max_message_bytes)
            except Unknown as reason:
                unknown.setdefault(str(reason), []).append(reason.task_id)
                done.append(tag)
                continue
            except Exception as error:  # whatever it is: it must not stop the queue
                log.warning("a message that is no wake-up of ours", queue=self.queue, error=str(error)[:200])
                self.inbox.reject(tag)
                continue
            if task_id is None:
                done.append(tag)
                self._ready.append(TickMessage(message))
            elif task_id in self._aside:
                done.append(tag)
            elif self._aside.waits_for(message.actor_name, now):
                done.append(tag)
                returned += self._aside.queue_up((message, task_id), now)
            else:
                self._waiting.append((tag, message, task_id))
        minutes = self.runtime.settings.unknown_actor_minutes
        for why, ids in unknown.items():
            self._persist(partial(self._write, tasks.refuse, ids, why, minutes))
        if returned:
            self._persist(partial(self._write, tasks.wake_each, returned))
        self._ack(done)

    def _ack(self, tags: Iterable[int]) -> None:
        """In as few frames as possible; 0 was acked long ago."""
        oldest_kept = min((tag for tag, _, _ in self._waiting), default=float("inf"))
        below = [tag for tag in tags if 0 < tag < oldest_kept]
        if below:
            self.inbox.ack(max(below), multiple=True)
        for tag in tags:
            if tag > oldest_kept:
                self.inbox.ack(tag)

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
        batch = self._next_batch(token)
        if not batch:
            return
        messages = {id_: message for _, message, id_ in batch}
        claimed: list[Claimed] = []
        refused: dict[uuid.UUID, Refusal] = {}
        answer: LimitedClaim | None = None
        try:
            answer = self._end_and_claim(list(messages), beat.id, token)
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
        mine = {run.id for run in claimed}
        # Who is aside stays there, whichever limit says no this time.
        goes_aside = {id_ for tag, _, id_ in batch if id_ in refused and (refused[id_].own or not tag)}
        self._set_aside([entry for entry in batch if entry[2] in goes_aside], refused)
        self._hold([entry for entry in batch if entry[2] in refused and entry[2] not in goes_aside], refused)
        # Of those aside nothing is left to settle: what may still run is published again within a lease.
        missed = [entry for entry in batch if entry[0] and entry[2] not in mine and entry[2] not in refused]
        rejected = self._sort_out(missed) if answer is not None else set()
        if answer is None:
            # We stop while PostgreSQL is away. Unacked messages return to the broker.
            self._waiting.extend(entry for entry in batch if entry[0])
        if refused:
            self._sharing.refused(now, self.held.average(self.queue))
            self._ask_at = max(self._ask_at, self._sharing.asks_again_at)
        held = {tag for tag, _, _ in self._waiting}
        self._ack([tag for tag, _, _ in batch if tag not in held and tag not in rejected])

    def _end_and_claim(self, ids: list[uuid.UUID], worker: uuid.UUID, token: uuid.UUID) -> LimitedClaim | None:
        """None: PostgreSQL is away and we stop."""
        endings = self.held.take_offered(self.queue)
        if endings:
            try:
                ended = [ending.completion() for ending in endings]
                answer: LimitedClaim | None = self._persist(
                    lambda: self.limits.claim(self.queue, ids, worker, token, ended)
                )
            except Exception as error:
                # One of the results cannot be stored. The finisher finds out which, and its task fails.
                log.info("a completion goes through the finisher", queue=self.queue, error=repr(error))
                answer = None
            if answer is not None:
                self.held.settled(ending.run for ending in endings)
                self._ends_seen += len(endings)
                return answer
            for ending in endings:
                self.runtime.finish(ending)
        claimed: LimitedClaim | None = self._persist(lambda: self.limits.claim(self.queue, ids, worker, token))
        return claimed

    def _next_batch(self, token: uuid.UUID) -> list[Waiting]:
        """What to claim now: as much as there is room for, in turns of those aside and those that wait."""
        now, ends = time.monotonic(), self._ends
        asks = self._asks(now)
        self._ends_seen = self.held.ends(self.queue)
        room = self.held.begin_claim(self.queue, token, len(self._waiting) + asks)
        share = max(room - len(self._waiting), (room + self._asides_turn) // 2)
        self._asides_turn = not self._asides_turn
        taken = self._aside.take(min(asks, share), now, ends) if asks else []
        waiting = [self._waiting.popleft() for _ in range(min(len(self._waiting), room - len(taken)))]
        return [*((0, message, id_) for message, id_ in taken), *waiting]

    def _set_aside(self, entries: list[Waiting], refused: dict[uuid.UUID, Refusal]) -> None:
        """What a limit of its own actor refuses must not stand in the way of the others."""
        now = time.monotonic()
        returned: list[tuple[uuid.UUID, float]] = []
        for name in {message.actor_name for _, message, _ in entries}:
            of_actor = [(message, id_) for _, message, id_ in entries if message.actor_name == name]
            ask_in = min(self.limits.ask_again(self.held.average_of(name), refused[id_]) for _, id_ in of_actor)
            returned += self._aside.keep(name, of_actor, now, ask_in)
        if returned:
            self._persist(partial(self._write, tasks.wake_each, returned))

    def _hold(self, entries: list[Waiting], refused: dict[uuid.UUID, Refusal]) -> None:
        """What its queue's limit refuses keeps its delivery and asks again soon; a long wait goes through the relay."""
        if not entries:
            return
        waits = {id_: self.limits.ask_again(self.held.average(self.queue), refused[id_]) for _, _, id_ in entries}
        kept = [entry for entry in entries if waits[entry[2]] <= LONGEST_HOLD]
        returned = [entry for entry in entries if waits[entry[2]] > LONGEST_HOLD]
        self._waiting.extendleft(reversed(kept))
        self._ask_at = time.monotonic() + min((waits[id_] for _, _, id_ in kept), default=0.0)
        if returned:
            self._persist(partial(self._write, tasks.wake_each, [(id_, waits[id_]) for _, _, id_ in returned]))

    def _sort_out(self, missed: list[Waiting]) -> set[int]:
        """Why the claim did not return them, and what becomes of their messages; the tags that were rejected."""
        beat = self.runtime.beat
        if not missed or beat is None:
            return set()
        ids = [entry[2] for entry in missed]
        why = self._persist(lambda: self._write(tasks.why_refused, self.queue, ids, beat.id)) or {}
        paused: list[uuid.UUID] = []
        rejected: set[int] = set()
        for tag, message, id_ in missed:
            match why.get(id_):
                case None:
                    # The same, a moment later.
                    self._waiting.append((tag, message, id_))
                case "worker dead":
                    self.runtime.die("its row says that it is dead")
                case "no row":
                    log.warning("a message without a task", queue=self.queue, task=str(id_))
                    self.inbox.reject(tag)
                    rejected.add(tag)
                case "paused":
                    paused.append(id_)
        if paused:
            self._persist(partial(self._write, tasks.wake, paused))
        return rejected
