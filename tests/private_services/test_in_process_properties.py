"""Whatever is done in whatever order, a message is in exactly one place, and comes when its turn is."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from private_services import Inbox, MessageStore

INBOXES = 2


class QueueOfTwoInboxes(RuleBasedStateMachine):
    """The model: three kinds of places, and in each of them the numbers of the messages."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MessageStore()
        self.published = 0
        self.ready: set[int] = set()
        self.delivered_before: set[int] = set()
        self.dead: list[int] = []
        self.removed: set[int] = set()
        self.open_inboxes()

    def open_inboxes(self) -> None:
        self.prefetch = [1, 3]
        self.inboxes: list[Inbox] = [self.store.consume("q", prefetch) for prefetch in self.prefetch]
        self.unacked: list[dict[int, int]] = [{} for _ in range(INBOXES)]

    @rule(count=st.integers(1, 4))
    def publish(self, count: int) -> None:
        for _ in range(count):
            self.published += 1
            self.ready.add(self.published)
            self.store.publish("q", b"%d" % self.published)

    @rule(index=st.integers(0, INBOXES - 1))
    def get(self, index: int) -> None:
        held = self.unacked[index]
        room = max(self.prefetch[index] - len(held), 0) if self.prefetch[index] else len(self.ready)
        expected = sorted(self.ready)[:room]
        deliveries = self.inboxes[index].get(0)
        assert [(int(body), again) for _, body, again in deliveries] == [
            (number, number in self.delivered_before) for number in expected
        ]
        held.update((tag, int(body)) for tag, body, _ in deliveries)
        self.ready.difference_update(expected)
        self.delivered_before.update(expected)

    @precondition(lambda self: any(self.unacked))
    @rule(data=st.data(), multiple=st.booleans())
    def ack(self, data: st.DataObject, multiple: bool) -> None:
        index, tag = self.draw_delivery(data)
        self.inboxes[index].ack(tag, multiple)
        held = self.unacked[index]
        for gone in [known for known in held if known == tag or (multiple and known < tag)]:
            self.removed.add(held.pop(gone))

    @precondition(lambda self: any(self.unacked))
    @rule(data=st.data())
    def reject(self, data: st.DataObject) -> None:
        index, tag = self.draw_delivery(data)
        self.inboxes[index].reject(tag)
        self.dead.append(self.unacked[index].pop(tag))

    @precondition(lambda self: any(self.unacked))
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        index, _ = self.draw_delivery(data)
        held = self.unacked[index]
        tags = data.draw(st.lists(st.sampled_from(sorted(held)), unique=True))
        self.inboxes[index].give_back(tags)
        self.ready.update(held.pop(tag) for tag in tags)

    @rule(index=st.integers(0, INBOXES - 1), prefetch=st.integers(0, 4))
    def set_prefetch(self, index: int, prefetch: int) -> None:
        self.inboxes[index].set_prefetch(prefetch)
        self.prefetch[index] = prefetch

    @rule(index=st.integers(0, INBOXES - 1))
    def close_and_consume_again(self, index: int) -> None:
        self.inboxes[index].close()
        self.ready.update(self.unacked[index].values())
        self.unacked[index] = {}
        self.inboxes[index] = self.store.consume("q", self.prefetch[index])

    @rule()
    def purge(self) -> None:
        assert self.store.purge("q") == len(self.ready)
        self.removed |= self.ready
        self.ready.clear()

    @rule()
    def delete(self) -> None:
        self.store.delete("q")
        self.removed |= self.ready.union(*(held.values() for held in self.unacked))
        self.ready.clear()
        assert all(inbox.closed for inbox in self.inboxes)
        self.open_inboxes()

    @rule(limit=st.integers(0, 3))
    def drain_dead(self, limit: int) -> None:
        assert [int(body) for body in self.store.drain_dead("q", limit)] == self.dead[:limit]
        self.removed.update(self.dead[:limit])
        del self.dead[:limit]

    def draw_delivery(self, data: st.DataObject) -> tuple[int, int]:
        places = [(index, tag) for index in range(INBOXES) for tag in self.unacked[index]]
        return data.draw(st.sampled_from(places))

    @invariant()
    def every_message_is_in_one_place(self) -> None:
        held = [number for inbox in self.unacked for number in inbox.values()]
        places: list[Any] = [*self.ready, *held, *self.dead, *self.removed]
        assert sorted(places) == list(range(1, self.published + 1))
        assert self.store.ready_count("q") == len(self.ready)
        assert self.store.ready_count("q.XQ") == len(self.dead)

    def teardown(self) -> None:
        """What the store really holds, not what it counts."""
        for inbox in self.inboxes:
            inbox.close()
        left = sorted(self.ready.union(*(held.values() for held in self.unacked)))
        assert [int(delivery.body) for delivery in self.store.consume("q", 0).get(0)] == left
        assert [int(body) for body in self.store.drain_dead("q", self.published)] == self.dead


TestQueueOfTwoInboxes = QueueOfTwoInboxes.TestCase
TestQueueOfTwoInboxes.settings = settings(max_examples=250, stateful_step_count=40, deadline=None)
