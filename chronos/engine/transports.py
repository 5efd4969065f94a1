"""How wake-ups travel: over RabbitMQ, or in the memory of one process. Both behave alike.

A transport has two ends: a publisher (the relay's, and a submitter's) and an inbox per consumed queue.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import deque
from typing import Any, Protocol

import pika
import pika.exceptions
import structlog
from dramatiq.common import xq_name
from dramatiq.message import Message

from chronos.db import pauses
from chronos.models.task import MESSAGE_VERSION
from private_services import Inbox as MemoryInbox
from private_services import MessageStore

log = structlog.get_logger("chronos.transports")

#: RabbitMQ drops what nobody looked at after seven days. Fixed for ever: RabbitMQ refuses a queue with other arguments.
DEAD_MESSAGE_TTL_MS = 7 * 24 * 3600 * 1000
PUBLISH_TIMEOUT = 10

Wakeup = tuple[uuid.UUID, str, int | None]
ConnectionLost = (pika.exceptions.AMQPError, OSError, AssertionError)


def encode(queue: str, wakeup: Wakeup) -> bytes:
    """Dramatiq's own message format, so that every Dramatiq tool can read our queues."""
    id_, name, user = wakeup
    return json.dumps(
        {
            "queue_name": queue,
            "actor_name": name,
            "args": [],
            "kwargs": {"version": MESSAGE_VERSION, "task_id": str(id_), "user_id": user, "task_name": name},
            "options": {},
            "message_id": str(id_),
            "message_timestamp": int(time.time() * 1000),
        },
        separators=(",", ":"),
    ).encode()


class Inbox(Protocol):
    def fetch(self, timeout: float) -> list[tuple[int, bytes]]: ...
    def ack(self, tag: int, *, multiple: bool = False) -> None: ...
    def reject(self, tag: int) -> None: ...
    def give_back(self, tags: list[int]) -> None: ...
    def pump(self, timeout: float) -> list[tuple[int, bytes]]: ...
    def set_prefetch(self, count: int) -> None: ...
    def park(self) -> None: ...
    def wake(self) -> None: ...
    def close(self) -> None: ...


class InboxLost(Exception):
    """The connection broke: every delivery that was not acked belongs to RabbitMQ again."""


# -------------------------------------------------------------------------------------------- RabbitMQ


def parameters(url: str) -> Any:
    found = pika.URLParameters(url)
    found.heartbeat = 10
    found.blocked_connection_timeout = PUBLISH_TIMEOUT
    found.socket_timeout = 5
    found.stack_timeout = 10
    found.connection_attempts = 1
    return found


def declare(channel: Any, queue: str) -> int:
    """Make the queue and its dead-letter queue if they are missing; how many messages are ready."""
    channel.queue_declare(xq_name(queue), durable=True, arguments={"x-message-ttl": DEAD_MESSAGE_TTL_MS})
    answer = channel.queue_declare(
        queue,
        durable=True,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": xq_name(queue)},
    )
    return int(answer.method.message_count)


class RabbitPublisher:
    """Publishes without waiting for confirms: the row is the truth, and a lost message is published again."""

    shared = True

    def __init__(self, url: str) -> None:
        self._parameters = parameters(url)
        self._connection: Any = None
        self._channel: Any = None
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def _open(self) -> Any:
        if self._connection is None or not self._connection.is_open or not self._channel.is_open:
            self._drop()
            self._connection = pika.BlockingConnection(self._parameters)
            self._channel = self._connection.channel()
        return self._channel

    def _drop(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        self._known.clear()
        if connection is not None and connection.is_open:
            try:
                connection.close()
            except ConnectionLost as error:
                log.debug("closing failed", error=repr(error))

    def ready_count(self, queue: str) -> int:
        """Also the barrier behind what was published before: it fails if that was lost with the connection."""
        with self._lock:
            try:
                channel = self._open()
                if queue not in self._known:
                    declare(channel, queue)
                    self._known.add(queue)
                return int(channel.queue_declare(queue, passive=True).method.message_count)
            except ConnectionLost:
                self._drop()
                raise

    def publish(self, queue: str, wakeups: list[Wakeup]) -> None:
        with self._lock:
            try:
                channel = self._open()
                if queue not in self._known:
                    declare(channel, queue)
                    self._known.add(queue)
                properties = pika.BasicProperties(delivery_mode=2)
                for wakeup in wakeups:
                    channel.basic_publish("", queue, encode(queue, wakeup), properties)
            except ConnectionLost:
                self._drop()
                raise

    def bury(self, queue: str, record: bytes) -> None:
        """Show a dead letter to whoever watches the broker."""
        with self._lock:
            try:
                channel = self._open()
                declare(channel, queue)
                channel.basic_publish("", xq_name(queue), record, pika.BasicProperties(delivery_mode=2))
            except ConnectionLost:
                self._drop()
                raise

    def drain_dead(self, queue: str, limit: int) -> list[bytes]:
        """Take dead messages; what is returned is gone from the broker only with the next call (see `settle`)."""
        with self._lock:
            try:
                channel = self._open()
                declare(channel, queue)
                bodies, tag = [], 0
                while len(bodies) < limit:
                    method, _, body = channel.basic_get(xq_name(queue))
                    if method is None:
                        break
                    bodies.append(body)
                    tag = method.delivery_tag
                self._drained = tag
                return bodies
            except ConnectionLost:
                self._drop()
                raise

    def settle(self) -> None:
        with self._lock:
            if self._channel is not None and getattr(self, "_drained", 0):
                self._channel.basic_ack(self._drained, multiple=True)
                self._connection.process_data_events(0)
                self._drained = 0

    def close(self) -> None:
        with self._lock:
            self._drop()


class RabbitInbox:
    def __init__(self, url: str, queue: str) -> None:
        self.queue = queue
        self._parameters = parameters(url)
        self._connection: Any = None
        self._channel: Any = None
        self._consumer: str | None = None
        self._prefetch = 1
        self._arrived: deque[tuple[int, bytes]] = deque()
        self._pauses = pauses(0.1)
        self._closed = False

    def _connect(self) -> None:
        self._connection = pika.BlockingConnection(self._parameters)
        self._channel = self._connection.channel()
        declare(self._channel, self.queue)
        self._channel.add_on_cancel_callback(self._on_cancel)
        self._consumer = None
        self._pauses = pauses(0.1)

    def _on_cancel(self, frame: Any) -> None:
        raise pika.exceptions.ChannelClosedByBroker(404, "the queue was deleted")

    def _consume(self) -> None:
        self._channel.basic_qos(prefetch_count=self._prefetch)
        self._consumer = self._channel.basic_consume(self.queue, self._on_message)

    def _on_message(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._arrived.append((method.delivery_tag, body))

    def fetch(self, timeout: float) -> list[tuple[int, bytes]]:
        try:
            if self._connection is None:
                self._connect()
            if self._consumer is None:
                self._consume()
            if not self._arrived:
                self._connection.process_data_events(time_limit=timeout)
            return self._taken()
        except ConnectionLost as error:
            self._lose()
            pause = next(self._pauses)
            log.warning("RabbitMQ is away", queue=self.queue, error=repr(error), next_try_s=round(pause, 2))
            time.sleep(pause)
            raise InboxLost(self.queue) from error

    def pump(self, timeout: float) -> list[tuple[int, bytes]]:
        """Keep the connection alive while parked or waiting, without consuming anew."""
        if self._connection is None:
            time.sleep(timeout)
            return []
        try:
            self._connection.process_data_events(time_limit=timeout)
            return self._taken()
        except ConnectionLost as error:
            self._lose()
            raise InboxLost(self.queue) from error

    def _taken(self) -> list[tuple[int, bytes]]:
        taken = list(self._arrived)
        self._arrived.clear()
        return taken

    def _lose(self) -> None:
        self._arrived.clear()
        connection, self._connection, self._channel, self._consumer = self._connection, None, None, None
        if connection is not None and connection.is_open:
            try:
                connection.close()
            except ConnectionLost as error:
                log.debug("closing failed", error=repr(error))

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        self._guard(lambda: self._channel.basic_ack(tag, multiple=multiple))

    def reject(self, tag: int) -> None:
        self._guard(lambda: self._channel.basic_nack(tag, requeue=False))

    def give_back(self, tags: list[int]) -> None:
        for tag in tags:
            self._guard(lambda tag=tag: self._channel.basic_nack(tag, requeue=True))

    def _guard(self, call: Any) -> None:
        try:
            call()
        except (*ConnectionLost, AttributeError) as error:
            self._lose()
            raise InboxLost(self.queue) from error

    def set_prefetch(self, count: int) -> None:
        if count > self._prefetch * 2 or count * 2 < self._prefetch or count == 1 < self._prefetch:
            self._prefetch = count
            if self._consumer is not None:
                self._guard(lambda: self._channel.basic_cancel(self._consumer))
                self._consumer = None
                if self._connection is not None:
                    self._guard(self._consume)

    def park(self) -> None:
        """Consume nothing until the next fetch; unclaimed messages go back to the others."""
        if self._consumer is not None:
            self._guard(lambda: self._channel.basic_cancel(self._consumer))
            self._consumer = None
        tags = [tag for tag, _ in self._taken()]
        self.give_back(tags)

    def wake(self) -> None:
        connection = self._connection
        if connection is not None:
            try:
                connection.add_callback_threadsafe(lambda: None)
            except ConnectionLost as error:
                log.debug("nobody to wake", error=repr(error))

    def close(self) -> None:
        self._lose()


# ------------------------------------------------------------------------------------------- in process


class MemoryPublisher:
    """For the embedded mode: this process hands its wake-ups to itself; submitters elsewhere only NOTIFY."""

    shared = False

    def __init__(self, store: MessageStore) -> None:
        self.store = store
        self._settled: list[bytes] = []

    def ready_count(self, queue: str) -> int:
        return self.store.ready_count(queue)

    def publish(self, queue: str, wakeups: list[Wakeup]) -> None:
        for wakeup in wakeups:
            self.store.publish(queue, encode(queue, wakeup))

    def bury(self, queue: str, record: bytes) -> None:
        self.store.publish(xq_name(queue), record)

    def drain_dead(self, queue: str, limit: int) -> list[bytes]:
        return self.store.drain_dead(queue, limit)

    def settle(self) -> None:
        """What was drained is gone already: it lives no longer than this process anyway."""

    def close(self) -> None:
        """Nothing is open."""


class StoreInbox:
    def __init__(self, store: MessageStore, queue: str) -> None:
        self._inbox: MemoryInbox = store.consume(queue, 1)

    def fetch(self, timeout: float) -> list[tuple[int, bytes]]:
        return [(delivery.tag, delivery.body) for delivery in self._inbox.get(timeout)]

    def pump(self, timeout: float) -> list[tuple[int, bytes]]:
        time.sleep(timeout)
        return []

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        self._inbox.ack(tag, multiple)

    def reject(self, tag: int) -> None:
        self._inbox.reject(tag)

    def give_back(self, tags: list[int]) -> None:
        self._inbox.give_back(tags)

    def set_prefetch(self, count: int) -> None:
        self._inbox.set_prefetch(count)

    def park(self) -> None:
        """Nobody else reads this store: there is nobody to give messages to."""

    def wake(self) -> None:
        self._inbox.wake()

    def close(self) -> None:
        self._inbox.close()


def decode(body: bytes) -> Message[Any]:
    return Message.decode(body)
