"""Limits and backoff for any input: the claim under limits on a real PostgreSQL, the delays as a pure rule."""

from __future__ import annotations

import uuid
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from chronos.engine import limits, tasks
from chronos.engine.tasks import LimitedClaim
from chronos.models.new_task import NewTask
from chronos.queues import POLICIES
from chronos.runtime import Runtime

ANY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def limit(key: str, name: str | None, rate: float | None, most: int | None) -> dict[str, object]:
    return {
        "key": key,
        "queue": "system",
        "task_name": name,
        "step": 1 / rate if rate else None,
        "max_running": most,
    }


class Ground:
    """An empty queue with these limits, and a worker that claims."""

    def __init__(self, runtime: Runtime, connection: Connection, *declared: dict[str, object]) -> None:
        self.runtime, self.connection = runtime, connection
        self.worker = uuid.uuid4()
        connection.execute(text("delete from tasks"))
        connection.execute(text("delete from limits"))
        limits.store(connection, declared, [])
        connection.execute(
            text("insert into workers (id, name, host, pid, process_start) values (:w, 'w', 'h', 1, '')"),
            {"w": self.worker},
        )

    def submit(self, *names: str) -> list[uuid.UUID]:
        return [done.id for done in self.runtime.submit(*[NewTask("system", name) for name in names])] if names else []

    def claim(self, ids: list[uuid.UUID], horizon: float, token: uuid.UUID | None = None) -> LimitedClaim:
        return tasks.claim_limited(self.connection, "system", ids, self.worker, token or uuid.uuid4(), horizon)


@ANY
@given(
    rate=st.floats(1, 1000),
    most=st.integers(0, 12),
    running=st.integers(0, 12),
    wanted=st.integers(0, 30),
    horizon=st.floats(0, 0.5),
)
def test_a_claim_never_exceeds_rate_or_concurrency(
    runtime: Runtime, rate: float, most: int, running: int, wanted: int, horizon: float
) -> None:
    with runtime.database.statement() as connection:
        ground = Ground(runtime, connection)
        already = ground.submit(*["a"] * running)
        assert len(ground.claim(already, 0).claimed) == running
        limits.store(connection, [limit("queue:system", None, rate, most)], [])
        waiting = ground.submit(*["a"] * wanted)
        answer = ground.claim(waiting, horizon)
        slots = sorted(run.slot for run in answer.claimed)
        assert len(slots) <= max(0, most - running)
        assert len(slots) + len(answer.refused) == wanted
        assert all(0 <= slot <= horizon for slot in slots)
        assert all(later - earlier >= 0.999 / rate for earlier, later in pairwise(slots))
        # Whoever asks next, from whatever process, gets slots behind these.
        behind = [run.slot for run in ground.claim(answer.refused, horizon + 1).claimed]
        assert len(slots) + len(behind) <= max(0, most - running)


@ANY
@given(names=st.lists(st.sampled_from("ab"), max_size=15), most=st.integers(1, 5))
def test_an_actors_limit_stops_only_that_actor(runtime: Runtime, names: list[str], most: int) -> None:
    with runtime.database.statement() as connection:
        ground = Ground(runtime, connection, limit("queue:system", None, None, 100), limit("actor:a", "a", None, most))
        answer = ground.claim(ground.submit(*names), 0.1)
        claimed = [run.task_name for run in answer.claimed]
        assert claimed.count("a") == min(most, names.count("a"))
        assert claimed.count("b") == names.count("b")


def test_a_limited_claim_whose_answer_was_lost_is_the_same_claim(runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        ground = Ground(runtime, connection, limit("queue:system", None, 10, 2))
        ids, token = ground.submit("a", "a", "a"), uuid.uuid4()
        first = ground.claim(ids, 1, token)
        again = ground.claim(ids, 1, token)
        assert {run.id for run in first.claimed} == {run.id for run in again.claimed}
        assert [run.attempt for run in again.claimed] == [1, 1]
        assert first.refused == again.refused


def test_a_paused_queue_grants_nothing(runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        ground = Ground(runtime, connection, limit("queue:system", None, 10, 2))
        ids = ground.submit("a")
        connection.execute(text("insert into queue_states (queue, paused_at) values ('system', clock_timestamp())"))
        answer = ground.claim(ids, 1)
        assert (answer.claimed, answer.refused) == ([], [])


def test_a_limit_that_the_code_no_longer_declares_is_forgotten(runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        limits.store(connection, [limit("actor:a", "a", 5, None)], [])
        assert limits.exist(connection, "system")
        limits.store(connection, [], ["actor:a"])
        assert not limits.exist(connection, "system")


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
