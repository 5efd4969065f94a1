"""How a run may end, in a real worker on the in-process broker."""

from __future__ import annotations

from sqlalchemy import text

from chronos.engine import tasks
from chronos.models.new_task import NewTask
from tests.processes import Workers, eventually, pass_time


def test_every_outcome_ends_as_it_should(embedded: Workers) -> None:
    with embedded.runtime.database.transaction() as connection:
        connection.execute(text("create table effects (task uuid)"))
    embedded.start(1)
    modes = ["later", "permanent", "nan", "nul", "transaction", "hang", "plain"]
    ids = {
        mode: embedded.runtime.submit(NewTask("system", "behave", {"mode": mode}, idempotency_key=mode))[0].id
        for mode in modes
    }
    gentle = embedded.runtime.submit(NewTask("system", "gentle", {"seconds": 0.05}))[0].id
    eventually(lambda: embedded.sql("select 1 from tasks where id = :i and status = 'in_progress'", i=ids["hang"]))
    with embedded.runtime.database.statement() as connection:
        assert tasks.cancel(connection, ids["hang"], "me") == "in_progress"
    embedded.all_final()
    found = {
        mode: embedded.sql("select status, attempt from tasks where id = :i", i=id_)[0] for mode, id_ in ids.items()
    }
    assert found == {
        "later": ("failed", 1),  # its second run saw that it had been put off: no attempt was used
        "permanent": ("failed", 1),
        "nan": ("failed", 1),
        "nul": ("failed", 1),
        "transaction": ("completed", 1),
        "hang": ("cancelled", 1),
        "plain": ("completed", 1),
    }
    assert embedded.sql("select task from effects") == [(ids["transaction"],)]
    assert embedded.sql("select result_payload from tasks where id = :i", i=ids["transaction"]) == [({"done": True},)]
    assert embedded.sql("select status, result_payload from tasks where id = :i", i=gentle) == [
        ("completed", {"loop": True})
    ]
    assert embedded.sql("select count(*) from dead_letters") == [(4,)]


def test_a_paused_queue_starts_nothing_and_uses_no_attempt(embedded: Workers) -> None:
    with embedded.runtime.database.statement() as connection:
        connection.execute(text("insert into queue_states (queue, paused_at) values ('broadcast', clock_timestamp())"))
    embedded.start(1)
    embedded.runtime.submit(NewTask("broadcast", "work"), NewTask("system", "behave"))
    eventually(lambda: embedded.statuses().get("completed") == 1)
    assert embedded.sql("select status, attempt from tasks where queue = 'broadcast'") == [("pending", 0)]
    with embedded.runtime.database.statement() as connection:
        connection.execute(text("update queue_states set paused_at = null"))
    assert embedded.all_final() == {"completed": 2}


def test_what_is_due_starts_by_priority(embedded: Workers) -> None:
    order = [9, 5, 1, 7, 3]
    embedded.runtime.submit(*[NewTask("broadcast", "work", {"seconds": 0.05}, priority=one) for one in order])
    embedded.start(1, threads=1)
    assert embedded.all_final() == {"completed": 5}
    # What one claim takes starts in one moment, so the order is that of the ends.
    assert embedded.sql("select priority from tasks order by finished_at") == [(one,) for one in sorted(order)]


def test_no_outcome_of_one_task_stops_the_finisher(embedded: Workers) -> None:
    """Results and errors that cannot be written down; what runs after them is recorded all the same."""
    embedded.start(1)
    modes = ["nested", "bad result", "bad error", "surrogate", "endless later", "plain"]
    for mode in modes:
        embedded.runtime.submit(NewTask("system", "behave", {"mode": mode}, idempotency_key=mode, max_attempts=1))
    eventually(lambda: not embedded.statuses().get("in_progress") and embedded.statuses().get("pending") == 1)
    found = dict(map(tuple, embedded.sql("select idempotency_key, status from tasks")))
    assert found == {
        "nested": "failed",
        "bad result": "failed",
        "bad error": "failed",
        "surrogate": "failed",
        "endless later": "pending",
        "plain": "completed",
    }
    assert embedded.sql(
        "select extract(days from run_at - now())::int between 364 and 366, attempt from tasks where status = 'pending'"
    ) == [(True, 0)]
    embedded.runtime.submit(NewTask("system", "behave", {"mode": "plain"}))
    eventually(lambda: embedded.statuses().get("completed") == 2)


def test_a_deadlock_in_an_actors_transaction_costs_no_attempt(embedded: Workers) -> None:
    embedded.start(1)
    embedded.runtime.submit(NewTask("system", "behave", {"mode": "deadlock"}, max_attempts=1))
    assert embedded.all_final() == {"completed": 1}
    assert embedded.sql("select attempt from tasks") == [(1,)]
    assert embedded.sql("select kind from task_events") == [("later",)]


def test_an_outcome_waits_for_a_lock_however_long_it_is_held(embedded: Workers) -> None:
    embedded.start(1, CHRONOS_STATEMENT_TIMEOUT_SECONDS="1")
    embedded.runtime.submit(NewTask("broadcast", "work", {"seconds": 0.5}))
    eventually(lambda: embedded.statuses().get("in_progress") == 1)
    with embedded.runtime.database.transaction() as connection:
        connection.execute(text("set local idle_in_transaction_session_timeout = 0"))
        connection.execute(text("select 1 from tasks for update"))
        pass_time(4)  # four statement timeouts
    assert embedded.all_final() == {"completed": 1}
    assert embedded.sql("select attempt, crashes from tasks") == [(1, 0)]
    assert embedded.sql("select kind from task_events") == []  # it was not given back and run again


def test_a_task_that_waits_for_its_actors_limit_lets_others_of_its_queue_pass(embedded: Workers) -> None:
    embedded.start(1)
    embedded.runtime.submit(*[NewTask("delivery", "single_work", {"seconds": 5}) for _ in range(4)])
    eventually(lambda: embedded.statuses().get("in_progress") == 1)
    embedded.runtime.submit(NewTask("delivery", "free_work"))
    eventually(lambda: embedded.statuses().get("completed") == 1)
    assert embedded.sql("select task_name from tasks where status = 'completed'") == [("free_work",)]
