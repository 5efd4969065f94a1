"""Queues in the memory of this process that behave as RabbitMQ's do; what they hold ends with the process.

A message is in exactly one place: ready in its queue, unacknowledged in one Inbox, or in the dead-letter
queue NAME.XQ. Only ack, purge, delete and drain_dead remove it. Messages are delivered in the order of their
publication; given back, they take their old place again, which is before all that were never delivered.
"""

import heapq
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from private_services.errors import ServiceError

DEAD_LETTERS = ".XQ"


class Delivery(NamedTuple):
    tag: int
    body: bytes
    #: It was delivered before, and not acknowledged.
    redelivered: bool


@dataclass(order=True, slots=True)
class _Message:
    number: int
    body: bytes = field(compare=False)
    redelivered: bool = field(compare=False, default=False)


class _Queue:
    """Guarded by its condition, which is notified when a message or room for one comes."""

    __slots__ = ("changed", "deleted", "fresh", "inboxes", "published", "returned")

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.Lock())
        self.fresh: deque[_Message] = deque()
        #: A heap. Its numbers are lower than all in `fresh`: what came back had been taken from the front.
        self.returned: list[_Message] = []
        self.published = 0
        self.inboxes: set[Inbox] = set()
        self.deleted = False

    def __len__(self) -> int:
        return len(self.fresh) + len(self.returned)

    def put(self, body: bytes) -> None:
        self.published += 1
        self.fresh.append(_Message(self.published, body))
        self.changed.notify_all()

    def take(self, limit: int) -> list[_Message]:
        returned, fresh = self.returned, self.fresh
        taken = [heapq.heappop(returned) for _ in range(min(limit, len(returned)))]
        taken.extend(fresh.popleft() for _ in range(min(limit - len(taken), len(fresh))))
        return taken

    def give_back(self, messages: list[_Message]) -> None:
        for message in messages:
            message.redelivered = True
            heapq.heappush(self.returned, message)
        self.changed.notify_all()

    def clear(self) -> int:
        count = len(self)
        self.fresh.clear()
        self.returned.clear()
        return count


class MessageStore:
    """Named queues, made when they are first named. Every method may be called from any thread."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}
        self._lock = threading.Lock()

    def publish(self, queue: str, body: bytes) -> None:
        while True:
            found = self._queue(queue)
            with found.changed:
                if not found.deleted:
                    found.put(body)
                    return

    def consume(self, queue: str, prefetch: int) -> "Inbox":
        """prefetch: how many messages may be unacknowledged at once; 0 means any number."""
        while True:
            found = self._queue(queue)
            with found.changed:
                if not found.deleted:
                    inbox = Inbox(self, queue, found, prefetch)
                    found.inboxes.add(inbox)
                    return inbox

    def ready_count(self, queue: str) -> int:
        """Without the unacknowledged ones."""
        found = self._queues.get(queue)
        return len(found) if found else 0

    def purge(self, queue: str) -> int:
        """Removes the ready messages, not the unacknowledged ones; how many there were."""
        found = self._queue(queue)
        with found.changed:
            return found.clear()

    def delete(self, queue: str) -> None:
        """With its messages, the unacknowledged ones too; its inboxes are closed. NAME.XQ stays."""
        with self._lock:
            found = self._queues.pop(queue, None)
        if found is None:
            return
        with found.changed:
            found.deleted = True
            for inbox in list(found.inboxes):
                inbox._close()
            found.clear()

    def drain_dead(self, queue: str, limit: int) -> list[bytes]:
        """Removes the oldest messages of NAME.XQ and returns them.

        To keep them until they are safe elsewhere, consume NAME.XQ instead.
        """
        found = self._queue(queue + DEAD_LETTERS)
        with found.changed:
            return [message.body for message in found.take(limit)]

    def _queue(self, name: str) -> _Queue:
        found = self._queues.get(name)
        if found is None:
            with self._lock:
                found = self._queues.setdefault(name, _Queue())
        return found


class Inbox:
    """One consumer of one queue. One thread gets; any thread may call the other methods."""

    def __init__(self, store: MessageStore, name: str, queue: _Queue, prefetch: int) -> None:
        self._store = store
        self._name = name
        self._queue = queue
        self._prefetch = prefetch
        #: In the order of their tags.
        self._unacked: dict[int, _Message] = {}
        self._last_tag = 0
        self._woken = False
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    def get(self, timeout: float | None = None) -> list[Delivery]:
        """All that is there and fits into the prefetch; waits for the first one.

        An empty list: nothing came in `timeout` seconds (None: no limit), or wake() or close() was called.
        """
        queue = self._queue
        deadline = None if timeout is None else time.monotonic() + timeout
        with queue.changed:
            if self._closed:
                raise self._closed_error()
            while not self._closed:
                room = (self._prefetch or len(queue) + len(self._unacked)) - len(self._unacked)
                if room > 0 and (messages := queue.take(room)):
                    self._woken = False
                    return [self._deliver(message) for message in messages]
                if self._woken:
                    self._woken = False
                    return []
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return []
                queue.changed.wait(left)
            # What close() gave back is for the other inboxes: here it could never be acknowledged.
            return []

    def ack(self, tag: int, multiple: bool = False) -> None:
        """multiple: this one and all that were delivered to this inbox before it."""
        with self._queue.changed:
            self._check(tag)
            if multiple:
                for earlier in [known for known in self._unacked if known < tag]:
                    del self._unacked[earlier]
            del self._unacked[tag]
            self._room_made()

    def reject(self, tag: int) -> None:
        """The message goes to the dead-letter queue NAME.XQ."""
        with self._queue.changed:
            self._check(tag)
            # Inside our lock, so that the message is never in no place; names only get longer: no deadlock.
            self._store.publish(self._name + DEAD_LETTERS, self._unacked.pop(tag).body)
            self._room_made()

    def give_back(self, tags: list[int]) -> None:
        """Unacknowledged messages become ready again, in their old places, marked as redelivered."""
        with self._queue.changed:
            for tag in tags:
                self._check(tag)
            self._queue.give_back([self._unacked.pop(tag) for tag in dict.fromkeys(tags)])

    def set_prefetch(self, prefetch: int) -> None:
        with self._queue.changed:
            self._prefetch = prefetch
            self._queue.changed.notify_all()

    def wake(self) -> None:
        """get() returns now; when nobody is in get(), the next one does."""
        with self._queue.changed:
            self._woken = True
            self._queue.changed.notify_all()

    def close(self) -> None:
        """Gives back all that is not acknowledged. A second close does nothing."""
        with self._queue.changed:
            self._close()

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._queue.inboxes.discard(self)
            self._queue.give_back(list(self._unacked.values()))
            self._unacked.clear()

    def _deliver(self, message: _Message) -> Delivery:
        self._last_tag += 1
        self._unacked[self._last_tag] = message
        return Delivery(self._last_tag, message.body, message.redelivered)

    def _room_made(self) -> None:
        if len(self._queue):
            self._queue.changed.notify_all()

    def _check(self, tag: int) -> None:
        if self._closed:
            raise self._closed_error()
        if tag not in self._unacked:
            raise ServiceError(f"delivery {tag} of queue {self._name} is not unacknowledged")

    def _closed_error(self) -> ServiceError:
        return ServiceError(f"this inbox of queue {self._name} is closed")
