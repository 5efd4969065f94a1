"""The ledger of effects: at most once over all runs, one repeat where the queue allows it, none after the expiry.

And progress, which is no effect.
"""

from __future__ import annotations

import uuid

import pytest
from pydantic import SecretStr
from sqlalchemy import Connection, text

from chronos.config import Settings
from chronos.engine import sends, tasks
from chronos.engine.tasks import Claimed
from chronos.errors import Ambiguous, Expired
from chronos.middleware.context import Context
from chronos.models.new_task import NewTask
from chronos.runtime import Runtime


def claim(connection: Connection, queue: str, id_: uuid.UUID) -> Claimed:
    """By a new worker; the one before has died."""
    worker = uuid.uuid4()
    connection.execute(
        text("insert into workers (id, name, host, pid, process_start) values (:w, 'w', 'h', 1, '')"), {"w": worker}
    )
    connection.execute(text("update tasks set run_at = clock_timestamp() where id = :id"), {"id": id_})
    [run] = tasks.claim(connection, queue, [id_], worker, uuid.uuid4())
    return run


def die(connection: Connection, id_: uuid.UUID) -> str:
    connection.execute(text("update workers set dead = true"))
    [(found, status)] = tasks.reap(connection)
    assert found == id_
    return status


def test_a_reminder_is_repeated_once_after_a_crash_and_then_unknown(runtime: Runtime) -> None:
    id_ = runtime.submit(NewTask("schedule", "remind"))[0].id
    with runtime.database.statement() as connection:
        for ends_as in ("pending", "unknown"):
            run = claim(connection, "schedule", id_)
            assert sends.intend(connection, run, "reminder", None) is None
            assert die(connection, id_) == ends_as
        assert connection.execute(text("select state, repeats from sends")).one() == ("unknown", 1)


def test_a_post_is_never_repeated_after_a_crash(runtime: Runtime) -> None:
    id_ = runtime.submit(NewTask("post", "publish"))[0].id
    with runtime.database.statement() as connection:
        run = claim(connection, "post", id_)
        assert sends.intend(connection, run, "post", None) is None
        assert die(connection, id_) == "unknown"
        assert tasks.mark_arrived(connection, id_, "me")
        assert connection.execute(text("select state from sends")).scalar_one() == "sent"


def test_an_open_intent_of_an_earlier_run_is_made_by_no_later_one(runtime: Runtime) -> None:
    """Whatever way the task came back to the queue."""
    id_ = runtime.submit(NewTask("post", "publish"))[0].id
    with runtime.database.statement() as connection:
        run = claim(connection, "post", id_)
        assert sends.intend(connection, run, "post", None) is None
        tasks.hand_back(connection, run, "whatever")
        with pytest.raises(Ambiguous):
            sends.intend(connection, claim(connection, "post", id_), "post", None)


def test_an_effect_that_surely_was_not_made_is_made_by_the_next_run(runtime: Runtime) -> None:
    id_ = runtime.submit(NewTask("post", "publish"))[0].id
    with runtime.database.statement() as connection:
        run = claim(connection, "post", id_)
        assert sends.intend(connection, run, "post", None) is None
        sends.store(connection, run, "post", "not_sent", None, None)
        assert die(connection, id_) == "pending"
        run = claim(connection, "post", id_)
        assert sends.intend(connection, run, "post", None) is None
        sends.store(connection, run, "post", "unknown", None, None)
        assert sends.intend(connection, run, "post", None) == sends.Stored(None, doubtful=True)


def test_no_new_effect_is_made_after_the_expiry_and_a_made_one_is_still_known(runtime: Runtime) -> None:
    id_ = runtime.submit(NewTask("post", "publish"))[0].id
    with runtime.database.statement() as connection:
        run = claim(connection, "post", id_)
        assert sends.intend(connection, run, "first", None) is None
        sends.store(connection, run, "first", "sent", {"n": 1}, None)
        connection.execute(text("update tasks set expires_at = clock_timestamp()"))
        assert sends.intend(connection, run, "first", None) == sends.Stored({"n": 1})
        with pytest.raises(Expired):
            sends.intend(connection, run, "second", None)
        assert connection.execute(text("select key from sends")).scalars().all() == ["first"]


def test_an_outage_of_postgresql_costs_a_run_only_the_sight_of_its_progress() -> None:
    nowhere = Runtime(Settings(database_url=SecretStr("postgresql://me:secret@127.0.0.1:1/nowhere")))
    run = Claimed(uuid.uuid4(), uuid.uuid4(), "system", "ping", 1, 3, {}, None, None, None, None)
    Context(nowhere, run).progress(1, 2)
    nowhere.close()
