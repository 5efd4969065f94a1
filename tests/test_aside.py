"""What a limit refuses: who waits here, who comes back later, who is asked for, and for how long. Pure memory."""

from __future__ import annotations

import uuid
from itertools import pairwise
from typing import Any

from dramatiq.message import Message
from hypothesis import given
from hypothesis import strategies as st

from chronos.middleware.aside import LONGEST_RETURN, MOST, Aside, Entry
from chronos.middleware.sharing import Sharing

NOW = 1000.0


def entries(count: int, name: str = "slow") -> list[Entry]:
    message: Message[Any] = Message("delivery", name, (), {}, {})
    return [(message, uuid.uuid4()) for _ in range(count)]


def aside(*, most: int | None = 1, rate: float | None = None, run_seconds: float = 0.1, lease: float = 15.0) -> Aside:
    return Aside(lambda name: {"concurrency": most, "rate": rate}, lambda name: run_seconds, lease)


def ids(found: list[Entry]) -> list[uuid.UUID]:
    return [id_ for _, id_ in found]


def test_nobody_is_asked_for_before_time_unless_a_run_has_ended() -> None:
    waiting = aside(most=2)
    five = entries(5)
    assert waiting.keep("slow", five, NOW, 0.05) == []
    assert waiting.asks(NOW, 0) == 0
    assert waiting.asks(NOW, 1) == 2
    assert waiting.asks(NOW + 0.05, 0) == 2
    assert ids(waiting.take(9, NOW, 1)) == ids(five[:2])
    assert len(waiting) == 3 and five[0][1] not in waiting and five[2][1] in waiting


def test_who_is_refused_again_stays_in_front() -> None:
    waiting = aside(most=1)
    five = entries(5)
    waiting.keep("slow", five, NOW, 0.05)
    taken = waiting.take(1, NOW, 1)
    waiting.keep("slow", taken, NOW, 0.05)
    assert ids(waiting.take(1, NOW, 1)) == ids(five[:1])


def test_a_newcomer_queues_behind_those_of_its_actor_and_no_others() -> None:
    waiting = aside(most=1)
    first, later = entries(2), entries(1)
    waiting.keep("slow", first, NOW, 0.05)
    assert waiting.waits_for("slow", NOW) and not waiting.waits_for("quick", NOW)
    assert not waiting.waits_for("slow", NOW + 0.05), "it is time to ask anyway"
    assert waiting.queue_up(later[0], NOW) == []
    order = [ids(waiting.take(1, NOW, 1)) for _ in range(3)]
    assert order == [ids(first[:1]), ids(first[1:]), ids(later)]


def test_a_long_backlog_comes_back_one_after_the_other() -> None:
    """One run of 0.1 s at a time: two seconds of work stay, the others get a turn each, a pace apart."""
    waiting = aside(most=1, run_seconds=0.1)
    returned = waiting.keep("slow", entries(30), NOW, 0.05)
    assert len(waiting) == 20 and len(returned) == 10
    waits = [wait for _, wait in returned]
    assert waits == sorted(waits) and waits[0] >= 2.0
    assert all(0.099 < later - earlier < 0.101 for earlier, later in pairwise(waits))


def test_a_rate_of_minutes_keeps_nobody_here() -> None:
    waiting = aside(most=None, rate=1 / 60)
    returned = waiting.keep("slow", entries(2), NOW, 55.0)
    assert len(waiting) == 0
    assert [wait >= 55.0 for _, wait in returned] == [True, True]


def test_nobody_stays_for_longer_than_half_a_lease_of_work() -> None:
    assert len(aside(run_seconds=0.1, lease=2.0).keep("slow", entries(30), NOW, 0.05)) == 20


@given(
    count=st.integers(0, 2000),
    most=st.integers(1, 50),
    run_seconds=st.floats(0.0001, 100),
    ask_in=st.floats(0.005, 0.9),
)
def test_everybody_is_kept_or_returned_and_returns_in_time(
    count: int, most: int, run_seconds: float, ask_in: float
) -> None:
    waiting = aside(most=most, run_seconds=run_seconds)
    everybody = entries(count)
    returned = waiting.keep("slow", everybody, NOW, ask_in)
    assert len(waiting) + len(returned) == count
    assert len(waiting) <= max(most, MOST)
    assert all(ask_in <= wait <= LONGEST_RETURN for _, wait in returned)
    gone = {id_ for id_, _ in returned}
    assert {id_ for _, id_ in everybody if id_ in waiting} == {id_ for _, id_ in everybody} - gone
    assert set(waiting.clear()) == {id_ for _, id_ in everybody} - gone
    assert len(waiting) == 0


def test_a_place_is_let_go_now_and_then_for_longer_when_runs_are_long() -> None:
    quick, slow = Sharing(), Sharing()
    let_go: dict[Sharing, list[float]] = {quick: [], slow: []}
    for step in range(1000):
        now = NOW + step / 10
        for sharing, run_seconds in ((quick, 0.05), (slow, 1.0)):
            before = sharing.asks_again_at
            sharing.refused(now, run_seconds)
            if sharing.asks_again_at != before:
                let_go[sharing].append(sharing.asks_again_at - now)
    assert 90 <= len(let_go[quick]) <= 99 and 4 <= len(let_go[slow]) <= 5
    assert max(let_go[quick]) < 0.02 and min(let_go[slow]) > 0.29
