"""Wake-ups over RabbitMQ. Nothing here waits for a confirm: the row is the truth, what got lost is published again."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pika
import pika.exceptions
import pika.frame
import pika.spec
import structlog
from dramatiq.common import xq_name

from chronos.db import pauses
from chronos.engine.transports import Delivery, InboxLost, Wakeup, encode

log = structlog.get_logger("chronos.rabbitmq")

#: RabbitMQ drops what nobody looked at after seven days. Fixed for ever: RabbitMQ refuses a queue with other arguments.
DEAD_MESSAGE_TTL_MS = 7 * 24 * 3600 * 1000
#: Seconds that RabbitMQ may refuse to read (memory or disk alarm) before the connection counts as lost.
BLOCKED_TIMEOUT = 10
#: Seconds between two heartbeats. A publisher that idles for longer is cut off by RabbitMQ and connects anew.
HEARTBEAT = 10
#: Of the dead messages that one sweep reads into memory.
MOST_DEAD_BYTES = 32_000_000

ConnectionLost = (pika.exceptions.AMQPError, OSError, AssertionError)
#: A wake-up that dies with RabbitMQ is published again, so it needs no disk. Dead letters do.
TRANSIENT, PERSISTENT = pika.BasicProperties(delivery_mode=1), pika.BasicProperties(delivery_mode=2)


def parameters(url: str) -> Any:
    found = pika.URLParameters(url)
    found.heartbeat = HEARTBEAT
    found.blocked_connection_timeout = BLOCKED_TIMEOUT
    found.socket_timeout = 5
    found.stack_timeout = 10
    found.connection_attempts = 1
    # A cut network is noticed within 15 s even where nothing is being read.
    found.tcp_options = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 2, "TCP_USER_TIMEOUT": 15000}
    return found


def declare(channel: Any, queue: str) -> None:
    """Make the queue and its dead-letter queue if they are missing."""
    channel.queue_declare(xq_name(queue), durable=True, arguments={"x-message-ttl": DEAD_MESSAGE_TTL_MS})
    channel.queue_declare(
        queue,
        durable=True,
        arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": xq_name(queue)},
    )


class RabbitTransport:
    def __init__(self, url: str) -> None:
        self.url = url

    def publisher(self) -> RabbitPublisher:
        return RabbitPublisher(self.url)

    def inbox(self, queue: str) -> RabbitInbox:
        return RabbitInbox(self.url, queue)

    @contextmanager
    def dead_messages(self, queue: str, most: int) -> Iterator[list[bytes]]:
        connection = pika.BlockingConnection(parameters(self.url))
        try:
            channel = connection.channel()
            declare(channel, queue)
            bodies: list[bytes] = []
            tag = 0
            while len(bodies) < most and sum(map(len, bodies)) < MOST_DEAD_BYTES:
                method, _, body = channel.basic_get(xq_name(queue))
                if method is None:
                    break
                bodies.append(body or b"")
                tag = method.delivery_tag
            yield bodies
            if bodies:
                channel.basic_ack(tag, multiple=True)
        finally:
            if connection.is_open:
                connection.close()


class RabbitPublisher:
    shared = True

    def __init__(self, url: str) -> None:
        self._parameters = parameters(url)
        self._connection: Any = None
        self._channel: Any = None
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def ready_count(self, queue: str) -> int:
        """Also the barrier behind what was published before: it fails if that was lost with the connection."""
        answer = self._call(queue, lambda channel: channel.queue_declare(queue, passive=True))
        return int(answer.method.message_count)

    def publish(self, queue: str, wakeups: list[Wakeup]) -> None:
        self._call(queue, lambda channel: _write(channel, queue, [encode(queue, one) for one in wakeups]))

    def send(self, queue: str, body: bytes) -> None:
        self._call(queue, lambda channel: _write(channel, queue, [body]))

    def close(self) -> None:
        # Not for ever: another thread may be in a call that a hanging RabbitMQ does not answer.
        if self._lock.acquire(timeout=1):
            try:
                self._drop()
            finally:
                self._lock.release()

    def _call(self, queue: str, work: Callable[[Any], Any]) -> Any:
        with self._lock:
            try:
                channel = self._open()
                if queue not in self._known:
                    declare(channel, queue)
                    self._known.add(queue)
                return work(channel)
            except ConnectionLost:
                self._drop()
                raise

    def _open(self) -> Any:
        if self._connection is not None:
            try:
                # Reads what came while nobody looked: a connection that RabbitMQ closed shows it here, not
                # after a message was written into it.
                self._connection.process_data_events(0)
            except ConnectionLost:
                self._drop()
        if self._connection is None or not self._connection.is_open or not self._channel.is_open:
            self._drop()
            self._connection = pika.BlockingConnection(self._parameters)
            self._channel = self._connection.channel()
        return self._channel

    def _drop(self) -> None:
        connection, self._connection, self._channel = self._connection, None, None
        self._known.clear()
        _close(connection)


def _write(channel: Any, queue: str, bodies: list[bytes]) -> None:
    """Many messages in one write: basic_publish() would poll the socket for each (50 us instead of 5)."""
    number = channel.channel_number
    method = pika.frame.Method(number, pika.spec.Basic.Publish(exchange="", routing_key=queue)).marshal()
    headers: dict[int, bytes] = {}
    parts: list[bytes] = []
    for body in bodies:
        size = len(body)
        if size not in headers:
            headers[size] = method + pika.frame.Header(number, size, TRANSIENT).marshal()
        parts += (headers[size], pika.frame.Body(number, body).marshal())
    channel.connection._impl._output_marshaled_frames([b"".join(parts)])
    channel._flush_output()


class RabbitInbox:
    def __init__(self, url: str, queue: str) -> None:
        self.queue = queue
        self._parameters = parameters(url)
        self._connection: Any = None
        self._channel: Any = None
        self._consumer: str | None = None
        self._prefetch = 1
        self._arrived: deque[Delivery] = deque()
        self._pauses = pauses(0.1)

    def fetch(self, timeout: float) -> list[Delivery]:
        """Consume, and wait for the first delivery."""
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

    def pump(self) -> list[Delivery]:
        """Keep the connection alive without consuming anew; what came all the same."""
        if self._connection is None:
            return []
        self._guard(lambda: self._connection.process_data_events(0))
        return self._taken()

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        self._guard(lambda: self._channel.basic_ack(tag, multiple=multiple))

    def reject(self, tag: int) -> None:
        self._guard(lambda: self._channel.basic_nack(tag, requeue=False))

    def give_back(self, tags: list[int]) -> None:
        for tag in tags:
            self._guard(partial(self._channel.basic_nack, tag, requeue=True))

    def set_prefetch(self, count: int) -> None:
        """Changed only by a factor of two or more: RabbitMQ takes it for new consumers only."""
        if self._prefetch / 2 < count < self._prefetch * 2:
            return
        self._prefetch = count
        if self._consumer is not None:
            self._guard(lambda: self._channel.basic_cancel(self._consumer))
            self._guard(self._consume)

    def park(self) -> None:
        """Consume nothing until the next fetch; unclaimed messages go back to the others."""
        if self._consumer is not None:
            self._guard(lambda: self._channel.basic_cancel(self._consumer))
            self._consumer = None
        self.give_back([tag for tag, _ in self._taken()])

    def bury(self, record: bytes) -> None:
        """Show a dead letter to whoever watches the broker; PostgreSQL has the one that counts."""
        connection, channel = self._connection, self._channel
        if connection is None:
            return
        try:
            connection.add_callback_threadsafe(
                lambda: channel.basic_publish("", xq_name(self.queue), record, PERSISTENT)
            )
        except ConnectionLost as error:
            log.info("a dead letter is not shown in RabbitMQ", queue=self.queue, error=repr(error))

    def close(self) -> None:
        self._lose()

    def _connect(self) -> None:
        self._connection = pika.BlockingConnection(self._parameters)
        self._channel = self._connection.channel()
        declare(self._channel, self.queue)
        self._channel.add_on_cancel_callback(self._on_cancel)
        self._consumer = None
        self._pauses = pauses(0.1)

    def _consume(self) -> None:
        self._channel.basic_qos(prefetch_count=self._prefetch)
        self._consumer = self._channel.basic_consume(self.queue, self._on_message)

    def _on_message(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._arrived.append((method.delivery_tag, body))

    def _on_cancel(self, frame: Any) -> None:
        raise pika.exceptions.ChannelClosedByBroker(404, "the queue was deleted")

    def _taken(self) -> list[Delivery]:
        taken = list(self._arrived)
        self._arrived.clear()
        return taken

    def _guard(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except (*ConnectionLost, AttributeError) as error:
            self._lose()
            raise InboxLost(self.queue) from error

    def _lose(self) -> None:
        self._arrived.clear()
        connection, self._connection, self._channel, self._consumer = self._connection, None, None, None
        _close(connection)


def _close(connection: Any) -> None:
    if connection is not None and connection.is_open:
        try:
            connection.close()
        except ConnectionLost as error:
            log.debug("closing failed", error=repr(error))
