"""Limits and backoff as pure rules, for any input."""

from __future__ import annotations

import uuid
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from chronos.engine.limits import LimitState, grant
from chronos.queues import POLICIES


@given(
    step=st.floats(0.001, 1),
    ahead=st.floats(-10, 1),
    most=st.integers(0, 30),
    running=st.integers(0, 30),
    wanted=st.integers(0, 60),
    horizon=st.floats(0, 0.5),
)
def test_a_grant_never_exceeds_rate_or_concurrency(
    step: float, ahead: float, most: int, running: int, wanted: int, horizon: float
) -> None:
    limit = LimitState("queue:x", None, step, ahead, most, running)
    slots = [slot for _, slot in grant([limit], [(uuid.uuid4(), "a") for _ in range(wanted)], horizon)]
    assert len(slots) <= max(0, most - running)
    assert all(0 <= slot <= horizon for slot in slots)
    assert all(later - earlier >= step * 0.999 for earlier, later in pairwise(slots))
    assert not slots or slots[0] >= ahead


@given(names=st.lists(st.sampled_from("ab"), max_size=20), most=st.integers(0, 5))
def test_an_actors_limit_stops_only_that_actor(names: list[str], most: int) -> None:
    limits = [LimitState("queue:x", None, None, 0, None, 0), LimitState("actor:a", "a", None, 0, most, 0)]
    candidates = [(uuid.uuid4(), name) for name in names]
    granted = {id_ for id_, _ in grant(limits, candidates, 0.1)}
    assert sum(1 for id_, name in candidates if name == "a" and id_ in granted) == min(most, names.count("a"))
    assert all(id_ in granted for id_, name in candidates if name == "b")


@given(queue=st.sampled_from(sorted(POLICIES)), attempt=st.integers(1, 20))
def test_a_backoff_doubles_and_its_jitter_is_at_most_a_fifth(queue: str, attempt: int) -> None:
    policy = POLICIES[queue]
    assert policy.delay(attempt + 1) == 2 * policy.delay(attempt)
    assert policy.delay(attempt) <= policy.jittered_delay(attempt) <= policy.delay(attempt) * 1.2


def test_the_policies_are_the_seeds() -> None:
    assert [POLICIES["report"].delay(n) for n in (1, 2, 3, 4)] == [2, 4, 8, 16]
    assert (POLICIES["post"].rate, POLICIES["post"].concurrency, POLICIES["post"].delay(1)) == (50, 10, 3)
    assert (POLICIES["schedule"].rate, POLICIES["schedule"].concurrency) == (100, 20)
    assert POLICIES["report"].concurrency == 5 and POLICIES["delivery"].runs == 3
