"""How a run may end, in a real worker on the in-process broker."""

from __future__ import annotations

from sqlalchemy import text

from chronos.engine import tasks
from chronos.models.new_task import NewTask
from tests.processes import Workers, eventually


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
