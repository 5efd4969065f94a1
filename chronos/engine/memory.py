"""Wake-ups in the memory of one process, for the embedded mode: each process hands them to itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dramatiq.common import xq_name

from chronos.engine.transports import Delivery, Wakeup, encode
from private_services import Inbox, MessageStore


class MemoryTransport:
    def __init__(self) -> None:
        self.store = MessageStore()

    def publisher(self) -> MemoryPublisher:
        return MemoryPublisher(self.store)

    def inbox(self, queue: str) -> MemoryInbox:
        return MemoryInbox(self.store, queue)

    @contextmanager
    def dead_messages(self, queue: str, most: int) -> Iterator[list[bytes]]:
        inbox = self.store.consume(xq_name(queue), most)
        try:
            deliveries = inbox.get(0)
            yield [delivery.body for delivery in deliveries]
            if deliveries:
                inbox.ack(deliveries[-1].tag, multiple=True)
        finally:
            inbox.close()


class MemoryPublisher:
    shared = False

    def __init__(self, store: MessageStore) -> None:
        self.store = store

    def ready_count(self, queue: str) -> int:
        return self.store.ready_count(queue)

    def publish(self, queue: str, wakeups: list[Wakeup]) -> None:
        for wakeup in wakeups:
            self.store.publish(queue, encode(queue, wakeup))

    def send(self, queue: str, body: bytes) -> None:
        self.store.publish(queue, body)

    def close(self) -> None:
        """Nothing is open."""


class MemoryInbox:
    def __init__(self, store: MessageStore, queue: str) -> None:
        self.store, self.queue = store, queue
        self._inbox: Inbox = store.consume(queue, 1)

    def fetch(self, timeout: float) -> list[Delivery]:
        return [(delivery.tag, delivery.body) for delivery in self._inbox.get(timeout)]

    def pump(self) -> list[Delivery]:
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

    def bury(self, record: bytes) -> None:
        self.store.publish(xq_name(self.queue), record)

    def close(self) -> None:
        self._inbox.close()
