"""Faults at an exact line of a worker: loaded into its process by CHRONOS_ACTORS, chosen by STOP_AT.

Each patches one method of the engine, so that the process dies (or stumbles) at that very point, once per process.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Any, NoReturn

import psycopg
from dramatiq.broker import MessageProxy
from dramatiq.message import Message
from sqlalchemy.exc import OperationalError

from chronos.engine.finisher import Finisher
from chronos.engine.rabbitmq import RabbitInbox
from chronos.middleware.consumer import ClaimingConsumer
from chronos.middleware.rate_limits import LimitQueues
from chronos.runtime import Runtime


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()
    raise AssertionError("still alive after SIGKILL")


def before_the_claim_commits() -> None:
    from chronos.engine import tasks

    def claim(self: LimitQueues, queue: str, ids: Any, worker: Any, token: Any) -> NoReturn:
        with self.runtime.loops.transaction() as connection:
            assert tasks.claim(connection, queue, ids, worker, token), "nothing was claimed"
            die()

    LimitQueues.claim = claim  # type: ignore[method-assign]


def before_the_ack() -> None:
    RabbitInbox.ack = lambda *_, **__: die()  # type: ignore[method-assign, assignment, misc]


def before_the_final_status() -> None:
    Finisher._write = lambda *_: die()  # type: ignore[method-assign, assignment]


def with_a_claimed_batch_in_the_buffer() -> None:
    """Dramatiq replaces a consumer that raises."""
    claim = ClaimingConsumer._claim
    done = threading.Event()

    def stumble(self: ClaimingConsumer) -> None:
        claim(self)
        if self._ready and not done.is_set():
            done.set()
            raise RuntimeError("the consumer breaks with a claimed batch in its buffer")

    ClaimingConsumer._claim = stumble  # type: ignore[method-assign]


def _lose_the_first_answer(error: Exception) -> None:
    claim = LimitQueues.claim
    done = threading.Event()

    def lose(self: LimitQueues, *arguments: Any) -> Any:
        answer = claim(self, *arguments)
        if answer.claimed and not done.is_set():
            done.set()
            raise error
        return answer

    LimitQueues.claim = lose  # type: ignore[method-assign]


def with_the_claims_answer_lost() -> None:
    """The claim is committed, and the connection breaks before its answer arrives."""
    _lose_the_first_answer(OperationalError("claim", {}, psycopg.OperationalError("the connection is lost")))


def with_the_intents_answer_lost() -> None:
    """The intent is committed, and the connection breaks before its answer arrives."""
    from chronos.engine import sends

    intend = sends.intend
    done = threading.Event()

    def lose(*arguments: Any) -> Any:
        answer = intend(*arguments)
        if not done.is_set():
            done.set()
            raise OperationalError("intend", {}, psycopg.OperationalError("the connection is lost"))
        return answer

    sends.intend = lose


def with_a_claim_forgotten() -> None:
    """The claim is committed, and this process knows nothing of it."""
    _lose_the_first_answer(RuntimeError("no error of the database"))


def with_messages_past_the_claim() -> None:
    """A broken consumer hands out what nobody claimed."""

    def receive(self: ClaimingConsumer, deliveries: list[tuple[int, bytes]]) -> None:
        self._ready.extend(MessageProxy(Message.decode(body)) for _, body in deliveries)

    ClaimingConsumer._receive = receive  # type: ignore[method-assign]


def at_the_boot() -> None:
    def recover(self: Runtime, reaper: Any) -> NoReturn:
        raise RuntimeError("no error of the database")

    Runtime._recover = recover  # type: ignore[method-assign]


def with_quick_heartbeats() -> None:
    """A RabbitMQ that hangs is noticed in seconds."""
    from chronos.engine import rabbitmq

    rabbitmq.HEARTBEAT = 1


POINTS = {
    "at the boot": at_the_boot,
    "before the claim commits": before_the_claim_commits,
    "before the ack": before_the_ack,
    "before the final status": before_the_final_status,
    "with a claimed batch in the buffer": with_a_claimed_batch_in_the_buffer,
    "with the claim's answer lost": with_the_claims_answer_lost,
    "with the intent's answer lost": with_the_intents_answer_lost,
    "with a claim forgotten": with_a_claim_forgotten,
    "with messages past the claim": with_messages_past_the_claim,
    "with quick heartbeats": with_quick_heartbeats,
}

if "STOP_AT" in os.environ:
    POINTS[os.environ["STOP_AT"]]()
