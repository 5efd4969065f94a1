"""The queues in memory: order, prefetch, what becomes of a message that is not acknowledged, and waiting."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from private_services import Delivery, Inbox, MessageStore, ServiceError
from tests.processes import eventually


@pytest.fixture
def store() -> MessageStore:
    return MessageStore()


def publish(store: MessageStore, *bodies: bytes) -> None:
    for body in bodies:
        store.publish("q", body)


def seen(inbox: Inbox) -> list[tuple[bytes, bool]]:
    return [(delivery.body, delivery.redelivered) for delivery in inbox.get(0)]


def bodies(inbox: Inbox) -> list[bytes]:
    return [delivery.body for delivery in inbox.get(0)]


class Getting:
    """inbox.get() without a limit, in a thread of its own."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._future: Future[list[Delivery]] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._future.set_result(self._inbox.get())
        except BaseException as error:
            self._future.set_exception(error)

    def result(self) -> list[Delivery]:
        return self._future.result(10)

    @property
    def waits(self) -> bool:
        frame = sys._current_frames().get(self._thread.ident or 0)
        return frame is not None and frame.f_code is threading.Condition.wait.__code__


def waiting_get(inbox: Inbox) -> Getting:
    getting = Getting(inbox)
    eventually(lambda: getting.waits, 10, "the thread waits in get()")
    return getting


def test_messages_come_in_the_order_of_their_publication(store: MessageStore) -> None:
    publish(store, b"1", b"2", b"3")
    assert seen(store.consume("q", 0)) == [(b"1", False), (b"2", False), (b"3", False)]


def test_an_inbox_holds_no_more_than_its_prefetch(store: MessageStore) -> None:
    publish(store, b"1", b"2", b"3")
    inbox = store.consume("q", 2)
    first, _ = inbox.get(0)
    assert inbox.get(0) == []
    inbox.ack(first.tag)
    assert bodies(inbox) == [b"3"]


def test_a_prefetch_of_zero_means_any_number(store: MessageStore) -> None:
    publish(store, *[b"%d" % number for number in range(1000)])
    inbox = store.consume("q", 0)
    assert len(inbox.get(0)) == 1000
    publish(store, b"one more")
    assert bodies(inbox) == [b"one more"]


def test_a_smaller_prefetch_holds_back_until_enough_is_acknowledged(store: MessageStore) -> None:
    publish(store, *[b"%d" % number for number in range(5)])
    inbox = store.consume("q", 3)
    tags = [delivery.tag for delivery in inbox.get(0)]
    inbox.set_prefetch(1)
    inbox.ack(tags[1], multiple=True)
    assert inbox.get(0) == []
    inbox.ack(tags[2])
    assert bodies(inbox) == [b"3"]


def test_a_larger_prefetch_is_noticed_by_a_waiting_get(store: MessageStore) -> None:
    publish(store, b"1", b"2")
    inbox = store.consume("q", 1)
    inbox.get(0)
    waiting = waiting_get(inbox)
    inbox.set_prefetch(2)
    assert [delivery.body for delivery in waiting.result()] == [b"2"]


def test_what_is_given_back_takes_its_old_place_before_all_that_is_new(store: MessageStore) -> None:
    publish(store, b"1", b"2", b"3", b"4")
    inbox = store.consume("q", 3)
    one, two, three = inbox.get(0)
    inbox.give_back([three.tag, one.tag])
    inbox.ack(two.tag)
    assert seen(inbox) == [(b"1", True), (b"3", True), (b"4", False)]


def test_a_tag_given_back_twice_in_one_call_comes_back_once(store: MessageStore) -> None:
    publish(store, b"1")
    inbox = store.consume("q", 0)
    [one] = inbox.get(0)
    inbox.give_back([one.tag, one.tag])
    assert bodies(inbox) == [b"1"]
    assert inbox.get(0) == []


def test_giving_back_an_unknown_tag_gives_back_nothing(store: MessageStore) -> None:
    publish(store, b"1")
    inbox = store.consume("q", 0)
    [one] = inbox.get(0)
    with pytest.raises(ServiceError, match="delivery 99 of queue q is not unacknowledged"):
        inbox.give_back([one.tag, 99])
    assert store.ready_count("q") == 0
    inbox.ack(one.tag)


def test_ack_multiple_takes_the_earlier_ones_of_this_inbox_only(store: MessageStore) -> None:
    publish(store, b"1", b"2", b"3", b"4")
    other, inbox = store.consume("q", 1), store.consume("q", 0)
    [theirs] = other.get(0)
    ours = inbox.get(0)
    inbox.ack(ours[1].tag, multiple=True)
    other.ack(theirs.tag)
    inbox.close()
    assert bodies(store.consume("q", 0)) == [b"4"]


@pytest.mark.parametrize("verb", [Inbox.ack, Inbox.reject])
def test_a_tag_is_settled_once(store: MessageStore, verb: Callable[[Inbox, int], None]) -> None:
    publish(store, b"1")
    inbox = store.consume("q", 0)
    [one] = inbox.get(0)
    verb(inbox, one.tag)
    with pytest.raises(ServiceError, match="is not unacknowledged"):
        verb(inbox, one.tag)
    assert store.ready_count("q.XQ") == (verb is Inbox.reject)


def test_a_rejected_message_is_a_dead_letter_as_if_new(store: MessageStore) -> None:
    publish(store, b"1", b"2")
    inbox = store.consume("q", 0)
    one, two = inbox.get(0)
    inbox.reject(two.tag)
    inbox.reject(one.tag)
    assert seen(store.consume("q.XQ", 0)) == [(b"2", False), (b"1", False)]
    assert store.ready_count("q") == 0


def test_dead_letters_are_drained_oldest_first(store: MessageStore) -> None:
    publish(store, b"1", b"2", b"3")
    inbox = store.consume("q", 0)
    for delivery in inbox.get(0):
        inbox.reject(delivery.tag)
    assert store.drain_dead("q", 2) == [b"1", b"2"]
    assert store.drain_dead("q", 2) == [b"3"]
    assert store.drain_dead("q", 2) == []


def test_rejecting_makes_room(store: MessageStore) -> None:
    publish(store, b"1", b"2")
    inbox = store.consume("q", 1)
    [one] = inbox.get(0)
    waiting = waiting_get(inbox)
    inbox.reject(one.tag)
    assert [delivery.body for delivery in waiting.result()] == [b"2"]


def test_acknowledging_makes_room_for_a_waiting_get(store: MessageStore) -> None:
    publish(store, b"1", b"2")
    inbox = store.consume("q", 1)
    [one] = inbox.get(0)
    waiting = waiting_get(inbox)
    inbox.ack(one.tag)
    assert [delivery.body for delivery in waiting.result()] == [b"2"]


def test_purge_removes_the_ready_ones_alone(store: MessageStore) -> None:
    publish(store, b"1", b"2", b"3")
    inbox = store.consume("q", 2)
    one, _ = inbox.get(0)
    inbox.give_back([one.tag])
    assert store.purge("q") == 2
    assert store.purge("q") == 0
    inbox.close()
    assert bodies(store.consume("q", 0)) == [b"2"]


def test_delete_removes_everything_but_the_dead_letters(store: MessageStore) -> None:
    publish(store, b"1", b"2", b"3")
    inbox = store.consume("q", 2)
    one, two = inbox.get(0)
    inbox.reject(one.tag)
    store.delete("q")
    assert inbox.closed
    with pytest.raises(ServiceError, match="this inbox of queue q is closed"):
        inbox.ack(two.tag)
    assert bodies(store.consume("q", 0)) == []
    assert store.drain_dead("q", 9) == [b"1"]


def test_deleting_a_queue_that_is_not_there_does_nothing(store: MessageStore) -> None:
    store.delete("q")
    assert store.ready_count("q") == 0


def test_a_deleted_queue_starts_anew(store: MessageStore) -> None:
    publish(store, b"old")
    store.delete("q")
    publish(store, b"new")
    assert bodies(store.consume("q", 0)) == [b"new"]


def test_delete_ends_a_waiting_get_with_nothing(store: MessageStore) -> None:
    publish(store, b"1", b"2")
    inbox = store.consume("q", 1)
    inbox.get(0)
    waiting = waiting_get(inbox)
    store.delete("q")
    assert waiting.result() == []


def test_close_gives_back_what_is_not_acknowledged(store: MessageStore) -> None:
    publish(store, b"1", b"2", b"3")
    inbox = store.consume("q", 2)
    one, _ = inbox.get(0)
    inbox.ack(one.tag)
    inbox.close()
    inbox.close()
    assert seen(store.consume("q", 0)) == [(b"2", True), (b"3", False)]


def test_close_hands_the_messages_to_the_next_waiting_inbox(store: MessageStore) -> None:
    publish(store, b"1")
    first, second = store.consume("q", 1), store.consume("q", 1)
    first.get(0)
    waiting = waiting_get(second)
    first.close()
    assert [(delivery.body, delivery.redelivered) for delivery in waiting.result()] == [(b"1", True)]


def test_a_closed_inbox_delivers_nothing_to_the_get_that_waits_in_it(store: MessageStore) -> None:
    """It could never be acknowledged: the message would be lost."""
    publish(store, b"1", b"2")
    inbox = store.consume("q", 1)
    inbox.get(0)
    waiting = waiting_get(inbox)
    inbox.close()
    assert waiting.result() == []
    assert seen(store.consume("q", 0)) == [(b"1", True), (b"2", False)]


@pytest.mark.parametrize(
    "use",
    [
        lambda inbox, tag: inbox.get(0),
        lambda inbox, tag: inbox.ack(tag),
        lambda inbox, tag: inbox.reject(tag),
        lambda inbox, tag: inbox.give_back([tag]),
    ],
    ids=["get", "ack", "reject", "give_back"],
)
def test_a_closed_inbox_refuses(store: MessageStore, use: Callable[[Inbox, int], Any]) -> None:
    publish(store, b"1")
    inbox = store.consume("q", 1)
    [one] = inbox.get(0)
    inbox.close()
    with pytest.raises(ServiceError, match="this inbox of queue q is closed"):
        use(inbox, one.tag)
    assert store.ready_count("q") == 1
    assert store.ready_count("q.XQ") == 0


def test_a_publish_ends_a_waiting_get(store: MessageStore) -> None:
    waiting = waiting_get(store.consume("q", 1))
    publish(store, b"1")
    assert [delivery.body for delivery in waiting.result()] == [b"1"]


def test_wake_ends_a_waiting_get_with_nothing(store: MessageStore) -> None:
    inbox = store.consume("q", 1)
    waiting = waiting_get(inbox)
    inbox.wake()
    assert waiting.result() == []


def test_wake_is_kept_for_the_next_get_and_for_that_one_alone(store: MessageStore) -> None:
    inbox = store.consume("q", 1)
    inbox.wake()
    inbox.wake()
    assert Getting(inbox).result() == []
    waiting = waiting_get(inbox)
    inbox.wake()
    assert waiting.result() == []


def test_a_message_uses_up_the_wake(store: MessageStore) -> None:
    inbox = store.consume("q", 0)
    inbox.wake()
    publish(store, b"1")
    assert bodies(inbox) == [b"1"]
    waiting = waiting_get(inbox)
    inbox.close()
    assert waiting.result() == []


def test_wake_is_for_one_inbox(store: MessageStore) -> None:
    woken, other = store.consume("q", 1), store.consume("q", 1)
    waiting = waiting_get(other)
    woken.wake()
    assert Getting(woken).result() == []
    publish(store, b"1")
    assert [delivery.body for delivery in waiting.result()] == [b"1"]


def test_threads_that_fail_and_close_lose_and_double_nothing(store: MessageStore) -> None:
    """Four consumers give back, reject, close and come again while two others publish."""
    total = 1200
    settled: list[bytes] = []
    deadline = time.monotonic() + 20

    def produce(first: int) -> None:
        for number in range(first, total, 2):
            store.publish("q", b"%d" % number)

    def consume(seed: int) -> None:
        turn = seed
        inbox = store.consume("q", 7)
        while len(settled) + store.ready_count("q.XQ") < total:
            assert time.monotonic() < deadline, "some messages never came"
            for tag, body, redelivered in inbox.get(0.01):
                turn += 1
                if inbox.closed:
                    break
                if turn % 13 == 0 and not redelivered:
                    inbox.close()
                elif turn % 5 == 0 and not redelivered:
                    inbox.give_back([tag])
                elif turn % 7 == 0:
                    inbox.reject(tag)
                else:
                    inbox.ack(tag)
                    settled.append(body)
            if inbox.closed:
                inbox = store.consume("q", 7)

    with ThreadPoolExecutor(6) as pool:
        jobs = [pool.submit(produce, first) for first in (0, 1)]
        jobs += [pool.submit(consume, seed) for seed in range(4)]
        for job in jobs:
            job.result(30)
    ends = settled + store.drain_dead("q", total)
    assert sorted(map(int, ends)) == list(range(total))
    assert store.ready_count("q") == 0
