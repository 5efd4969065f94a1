"""Limits and backoff for any input: the claim under limits on a real PostgreSQL, the delays as a pure rule."""

from __future__ import annotations

import uuid
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from chronos.engine import limits, tasks
from chronos.engine.tasks import Completion, LimitedClaim, Refusal
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

    def claim(
        self, ids: list[uuid.UUID], horizon: float, token: uuid.UUID | None = None, ended: tuple[Completion, ...] = ()
    ) -> LimitedClaim:
        return tasks.claim_limited(self.connection, "system", ids, self.worker, token or uuid.uuid4(), horizon, ended)


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
        behind = [run.slot for run in ground.claim(list(answer.refused), horizon + 1).claimed]
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
        assert set(first.refused) == set(again.refused)


def test_the_place_of_a_run_that_ended_is_taken_in_the_same_call(runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        ground = Ground(runtime, connection, limit("queue:system", None, None, 1))
        first, second, third = ground.submit("a", "a", "a")
        [run] = ground.claim([first], 0.1).claimed
        assert ground.claim([second], 0.1).claimed == []
        done = (run.id, run.token, '{"made": 1}')
        token = uuid.uuid4()
        assert [task.id for task in ground.claim([second, third], 0.1, token, (done,)).claimed] == [second]
        # The answer was lost: the same call completes nothing twice and claims nothing more.
        again = ground.claim([second, third], 0.1, token, (done,))
        assert [task.id for task in again.claimed] == [second] and set(again.refused) == {third}
        row = connection.execute(text("select status, result_payload from tasks where id = :id"), {"id": first}).one()
        assert tuple(row) == ("completed", {"made": 1})


def test_a_run_that_lost_its_task_completes_nothing(runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        ground = Ground(runtime, connection, limit("queue:system", None, None, 1))
        first, second = ground.submit("a", "a")
        ground.claim([first], 0.1)
        assert ground.claim([second], 0.1, ended=((first, uuid.uuid4(), None),)).claimed == []
        status = connection.execute(text("select status from tasks where id = :id"), {"id": first}).scalar_one()
        assert status == "in_progress"


def test_refusals_of_a_rate_wait_for_a_slot_each(runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        ground = Ground(runtime, connection, limit("queue:system", None, 0.1, None))
        answer = ground.claim(ground.submit("a", "a", "a", "a"), 0.1)
        waits = sorted(refusal.next_slot for refusal in answer.refused.values())
        assert len(answer.claimed) == 1 and [round(wait) for wait in waits] == [10, 20, 30]


def test_a_claim_reads_the_rows_that_it_names_however_many_wait(runtime: Runtime) -> None:
    """A planner with old statistics believes in few pending rows, and would read all of them by their index."""
    with runtime.database.statement() as connection:
        ground = Ground(runtime, connection, limit("queue:system", None, None, 5))
        connection.execute(text("analyze tasks"))
        ids = ground.submit(*["a"] * 3000)

        def read() -> int:
            connection.execute(text("select pg_stat_force_next_flush()"))
            counted = "select idx_tup_read from pg_stat_user_indexes where indexrelname = 'tasks_due_idx'"
            return int(connection.execute(text(counted)).scalar_one())

        before = read()
        for start in range(0, 100, 10):
            ground.claim(ids[start : start + 10], 0.1)
        with runtime.database.statement() as other:
            tasks.wake(other, ids[100:110])
            tasks.refuse(other, ids[100:110], "nobody knows it", 10)
        with runtime.database.statement() as other:
            other.execute(text("select pg_stat_force_next_flush()"))
        assert read() - before < 3000


def test_no_loop_reads_the_whole_table_whatever_was_planned_when_it_was_small(runtime: Runtime) -> None:
    worker = uuid.uuid4()

    def work(connection: Connection, ids: list[uuid.UUID]) -> None:
        token = uuid.uuid4()
        runs = tasks.claim(connection, "system", ids, worker, token)
        tasks.finish(connection, [(run.id, run.token, None) for run in runs])
        tasks.why_refused(connection, "system", ids, worker)
        tasks.wake(connection, ids)
        tasks.mark_published(connection, "system", 10, 1.0)
        tasks.due_queues(connection)
        tasks.running_of(connection, worker)
        tasks.reap(connection)
        tasks.expire(connection)

    def sequential(connection: Connection) -> int:
        connection.execute(text("select pg_stat_force_next_flush()"))
        return int(
            connection.execute(text("select seq_scan from pg_stat_user_tables where relname = 'tasks'")).scalar_one()
        )

    with runtime.loops.statement() as connection:
        Ground(runtime, connection).worker = worker
        connection.execute(
            text("insert into workers (id, name, host, pid, process_start) values (:w, 'w', 'h', 1, '')"), {"w": worker}
        )
        for _ in range(20):  # until the server keeps its plans
            work(connection, [done.id for done in runtime.submit(NewTask("system", "a"))])
        before = sequential(connection)
        ids = [done.id for done in runtime.submit(*[NewTask("system", "a") for _ in range(2000)])]
        for start in range(0, 200, 50):
            work(connection, ids[start : start + 50])
        assert sequential(connection) == before


def test_a_refusal_names_only_the_limits_that_refuse(runtime: Runtime) -> None:
    """A task that waits for the queue is not told to wait for the slot of another actor's slow rate."""
    with runtime.database.statement() as connection:
        ground = Ground(
            runtime, connection, limit("queue:system", None, None, 1), limit("actor:slow", "slow", 1 / 60, None)
        )
        assert len(ground.claim(ground.submit("slow"), 0.1).claimed) == 1
        [quick] = ground.submit("quick")
        [slow] = ground.submit("slow")
        refused = ground.claim([quick, slow], 0.1).refused
        assert refused[quick] == Refusal(full=True, own=False, next_slot=0.0)
        assert refused[slow].own and 59 < refused[slow].next_slot <= 60


def test_a_paused_queue_grants_nothing(runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        ground = Ground(runtime, connection, limit("queue:system", None, 10, 2))
        ids = ground.submit("a")
        connection.execute(text("insert into queue_states (queue, paused_at) values ('system', clock_timestamp())"))
        answer = ground.claim(ids, 1)
        assert (answer.claimed, answer.refused) == ([], {})


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
