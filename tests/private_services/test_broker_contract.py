"""The queues in memory behave as RabbitMQ's do: the same script, played to both, shows the same.

RabbitMQ delivers as soon as it can, an Inbox when it is asked. So the script asks after every step, and tells
RabbitMQ's side how many deliveries the other side had: what RabbitMQ has more is found at the next step, or
at the end, when everything that is left is counted.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import pika
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_services import Inbox, MessageStore, PrivateRabbitMQ
from tests.processes import eventually

pytestmark = pytest.mark.rabbitmq

#: Body and whether it is marked as redelivered.
Seen = list[tuple[bytes, bool]]


class Consumer(Protocol):
    #: Of what is not settled, by the body.
    tags: dict[bytes, int]

    def arrived(self, expected: int) -> Seen: ...
    def ack(self, tag: int, multiple: bool) -> None: ...
    def reject(self, tag: int) -> None: ...
    def give_back(self, tags: list[int]) -> None: ...
    def close(self) -> None: ...


class Broker(Protocol):
    def publish(self, queue: str, body: bytes) -> None: ...
    def consume(self, queue: str, prefetch: int) -> Consumer: ...
    def ready_count(self, queue: str) -> int: ...
    def purge(self, queue: str) -> int: ...
    def delete(self, queue: str) -> None: ...


@dataclass
class MemoryConsumer:
    inbox: Inbox
    tags: dict[bytes, int] = field(default_factory=dict)

    def arrived(self, expected: int) -> Seen:
        deliveries = self.inbox.get(0)
        self.tags.update((delivery.body, delivery.tag) for delivery in deliveries)
        return [(delivery.body, delivery.redelivered) for delivery in deliveries]

    def ack(self, tag: int, multiple: bool) -> None:
        self.inbox.ack(tag, multiple)

    def reject(self, tag: int) -> None:
        self.inbox.reject(tag)

    def give_back(self, tags: list[int]) -> None:
        self.inbox.give_back(tags)

    def close(self) -> None:
        self.inbox.close()


class MemoryBroker:
    def __init__(self) -> None:
        self.store = MessageStore()
        self.publish = self.store.publish
        self.ready_count = self.store.ready_count
        self.purge = self.store.purge
        self.delete = self.store.delete

    def consume(self, queue: str, prefetch: int) -> MemoryConsumer:
        return MemoryConsumer(self.store.consume(queue, prefetch))


class RabbitConsumer:
    def __init__(self, connection: pika.BlockingConnection, queue: str, prefetch: int) -> None:
        self.tags: dict[bytes, int] = {}
        self._connection = connection
        self._new: Seen = []
        self._channel: Any = connection.channel()
        self._channel.basic_qos(prefetch_count=prefetch)
        self._channel.basic_consume(queue, self._on_message)

    def _on_message(self, channel: object, method: Any, properties: object, body: bytes) -> None:
        self.tags[body] = method.delivery_tag
        self._new.append((body, method.redelivered))

    def arrived(self, expected: int) -> Seen:
        def enough() -> bool:
            self._connection.process_data_events(time_limit=0.01)
            return len(self._new) >= expected

        eventually(enough, 10, f"{expected} deliveries; there are {self._new}")
        seen, self._new = self._new, []
        return seen

    def ack(self, tag: int, multiple: bool) -> None:
        self._channel.basic_ack(tag, multiple=multiple)

    def reject(self, tag: int) -> None:
        self._channel.basic_reject(tag, requeue=False)

    def give_back(self, tags: list[int]) -> None:
        for tag in tags:
            self._channel.basic_nack(tag, requeue=True)

    def close(self) -> None:
        self._channel.close()


class RabbitBroker:
    def __init__(self, connection: pika.BlockingConnection) -> None:
        self._connection = connection
        self._channel: Any = connection.channel()
        self._channel.confirm_delivery()

    def _declare(self, queue: str) -> Any:
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{queue}.XQ"}
        is_dead = queue.endswith(".XQ")
        if not is_dead:
            self._declare(f"{queue}.XQ")
        return self._channel.queue_declare(queue, durable=True, arguments=None if is_dead else arguments)

    def publish(self, queue: str, body: bytes) -> None:
        self._declare(queue)
        self._channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2), mandatory=True)

    def consume(self, queue: str, prefetch: int) -> RabbitConsumer:
        self._declare(queue)
        return RabbitConsumer(self._connection, queue, prefetch)

    def ready_count(self, queue: str) -> int:
        return int(self._declare(queue).method.message_count)

    def purge(self, queue: str) -> int:
        self._declare(queue)
        return int(self._channel.queue_purge(queue).method.message_count)

    def delete(self, queue: str) -> None:
        self._channel.queue_delete(queue)


class Play:
    """Does everything to both brokers and compares what they show."""

    def __init__(self, memory: MemoryBroker, rabbit: RabbitBroker) -> None:
        self.queue = f"contract-{uuid.uuid4().hex}"
        self.brokers: tuple[Broker, Broker] = (memory, rabbit)

    def publish(self, *bodies: bytes) -> None:
        for broker in self.brokers:
            for body in bodies:
                broker.publish(self.queue, body)

    def consume(self, prefetch: int, suffix: str = "") -> PlayedConsumer:
        return PlayedConsumer([broker.consume(self.queue + suffix, prefetch) for broker in self.brokers])

    def purge(self) -> int:
        return self._same(lambda broker: broker.purge(self.queue))

    def delete(self) -> None:
        for broker in self.brokers:
            broker.delete(self.queue)

    def _same(self, look: Callable[[Broker], int]) -> int:
        memory, rabbit = map(look, self.brokers)
        assert rabbit == memory
        return memory

    def end(self, *consumers: PlayedConsumer) -> tuple[Seen, Seen]:
        """What is left, dead letters second; nothing may be left over on either side."""
        for consumer in consumers:
            consumer.close()
        memory, rabbit = self.brokers
        for name in (self.queue, f"{self.queue}.XQ"):
            eventually(lambda name=name: rabbit.ready_count(name) == memory.ready_count(name), 10, name)
        left = self.consume(0).arrived(), self.consume(0, ".XQ").arrived()
        self.delete()
        rabbit.delete(f"{self.queue}.XQ")
        return left


@dataclass
class PlayedConsumer:
    sides: list[Consumer]

    @property
    def unsettled(self) -> list[bytes]:
        """In the order of their delivery."""
        return list(self.sides[0].tags)

    def arrived(self) -> Seen:
        memory = self.sides[0].arrived(0)
        assert self.sides[1].arrived(len(memory)) == memory
        return memory

    def ack(self, body: bytes, multiple: bool = False) -> None:
        for side in self.sides:
            tag = side.tags[body]
            side.ack(tag, multiple)
            for settled in [known for known, one in side.tags.items() if one == tag or (multiple and one < tag)]:
                del side.tags[settled]

    def reject(self, body: bytes) -> None:
        for side in self.sides:
            side.reject(side.tags.pop(body))

    def give_back(self, bodies: list[bytes]) -> None:
        for side in self.sides:
            side.give_back([side.tags.pop(body) for body in bodies])

    def close(self) -> None:
        for side in self.sides:
            side.close()


@pytest.fixture(scope="module")
def connection(rabbitmq: PrivateRabbitMQ) -> Iterator[pika.BlockingConnection]:
    with pika.BlockingConnection(pika.URLParameters(rabbitmq.url)) as made:
        yield made


@pytest.fixture
def play(connection: pika.BlockingConnection) -> Play:
    return Play(MemoryBroker(), RabbitBroker(connection))


def test_order_and_prefetch(play: Play) -> None:
    play.publish(b"1", b"2", b"3", b"4")
    consumer = play.consume(2)
    assert consumer.arrived() == [(b"1", False), (b"2", False)]
    consumer.ack(b"2")
    assert consumer.arrived() == [(b"3", False)]
    consumer.ack(b"3", multiple=True)
    assert consumer.arrived() == [(b"4", False)]
    assert play.end(consumer) == ([(b"4", True)], [])


def test_what_is_given_back_comes_again_in_its_old_place(play: Play) -> None:
    play.publish(b"1", b"2", b"3", b"4", b"5")
    consumer = play.consume(3)
    consumer.arrived()
    consumer.give_back([b"1", b"3"])
    assert consumer.arrived() == [(b"1", True), (b"3", True)]
    consumer.ack(b"1")
    assert consumer.arrived() == [(b"4", False)]
    assert play.end(consumer) == ([(b"2", True), (b"3", True), (b"4", True), (b"5", False)], [])


def test_a_consumer_that_closes_leaves_its_messages_to_the_next_one(play: Play) -> None:
    play.publish(b"1", b"2", b"3", b"4")
    first = play.consume(2)
    first.arrived()
    second = play.consume(1)
    assert second.arrived() == [(b"3", False)]
    first.close()
    second.ack(b"3")
    assert second.arrived() == [(b"1", True)]
    second.ack(b"1")
    assert second.arrived() == [(b"2", True)]
    second.ack(b"2")
    assert second.arrived() == [(b"4", False)]
    assert play.end(second) == ([(b"4", True)], [])


def test_dead_letters_come_as_new_in_the_order_of_their_rejection(play: Play) -> None:
    play.publish(b"1", b"2", b"3")
    consumer = play.consume(0)
    consumer.arrived()
    consumer.give_back([b"1"])
    consumer.arrived()
    dead = play.consume(0, ".XQ")
    for body in (b"3", b"1"):
        consumer.reject(body)
    assert dead.arrived() == [(b"3", False), (b"1", False)]
    dead.ack(b"3")
    assert play.end(consumer, dead) == ([(b"2", True)], [(b"1", True)])


def test_purge_leaves_what_is_unacknowledged(play: Play) -> None:
    play.publish(b"1", b"2", b"3")
    consumer = play.consume(1)
    consumer.arrived()
    assert play.purge() == 2
    play.publish(b"4")
    assert play.end(consumer) == ([(b"1", True), (b"4", False)], [])


def test_delete_takes_the_unacknowledged_too_and_leaves_the_dead_letters(play: Play) -> None:
    play.publish(b"1", b"2", b"3")
    consumer = play.consume(2)
    consumer.arrived()
    consumer.reject(b"1")
    dead = play.consume(1, ".XQ")
    assert dead.arrived() == [(b"1", False)]
    play.delete()
    play.publish(b"4")
    again = play.consume(0)
    assert again.arrived() == [(b"4", False)]
    assert play.end(again, dead) == ([(b"4", True)], [(b"1", True)])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["publish", "ack", "ack multiple", "reject", "give back", "purge", "reopen"]),
        st.integers(0, 5),
    ),
    min_size=4,
    max_size=14,
)


@settings(max_examples=12, deadline=None)
@given(prefetch=st.integers(0, 4), steps=STEPS)
def test_any_script(connection: pika.BlockingConnection, prefetch: int, steps: list[tuple[str, int]]) -> None:
    """One consumer: of two, RabbitMQ and not the script would choose the one that gets a message."""
    play = Play(MemoryBroker(), RabbitBroker(connection))
    consumer, dead = play.consume(prefetch), play.consume(0, ".XQ")
    published = 0
    for step, number in [("publish", 5), *steps]:
        unsettled = consumer.unsettled
        chosen = unsettled[number % len(unsettled)] if unsettled else None
        if step == "publish":
            play.publish(*[b"%03d" % (published + one) for one in range(number)])
            published += number
        elif step == "purge":
            play.purge()
        elif step == "reopen":
            consumer.close()
            consumer = play.consume(prefetch)
        elif chosen is None:
            continue
        elif step == "give back":
            # In the order of publication: RabbitMQ's side gives them back one after the other.
            consumer.give_back(sorted(unsettled)[: number + 1])
        elif step == "reject":
            consumer.reject(chosen)
        else:
            consumer.ack(chosen, multiple=step == "ack multiple")
        consumer.arrived()
        dead.arrived()
    play.end(consumer, dead)
