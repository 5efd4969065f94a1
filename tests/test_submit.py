"""Accepting a task: all or nothing, one clear line, never twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from chronos.engine import tasks
from chronos.errors import BadInput
from chronos.models.new_task import NewTask
from chronos.runtime import Runtime


def count(runtime: Runtime) -> int:
    with runtime.database.statement() as connection:
        return int(connection.execute(text("select count(*) from tasks")).scalar_one())


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (NewTask("nowhere", "ping"), "unknown queue 'nowhere': choose one of report, post"),
        (NewTask("system", "ping", {"say": "x" * 70000}), "at most 65,536"),
        (NewTask("system", "ping", {"say": "a\x00b"}), "NUL"),
        (NewTask("system", "ping", {"say": "\ud800"}), "surrogate"),
        (NewTask("system", "ping", {"say": float("nan")}), "not JSON"),
        (NewTask("system", "ping", priority=10), "priority 10"),
        (NewTask("system", "ping", expires_at=datetime(2020, 1, 1, tzinfo=UTC)), "past"),
        (NewTask("system", "ping", run_at=datetime(2020, 1, 1)), "no time zone"),  # noqa: DTZ001
    ],
)
def test_bad_input_is_one_line_and_disturbs_nobody(runtime: Runtime, task: NewTask, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        runtime.submit(NewTask("system", "ping"), task)
    assert "\n" not in str(caught.value)
    assert count(runtime) == 0


def test_the_same_key_with_the_same_params_is_the_same_task(runtime: Runtime) -> None:
    first = runtime.submit(NewTask("system", "ping", {"say": "1"}, idempotency_key="k"))[0]
    again, twin = runtime.submit(
        NewTask("system", "ping", {"say": "1"}, idempotency_key="k"),
        NewTask("system", "ping", {"say": "1"}, idempotency_key="k"),
    )
    assert (first.created, again.created, twin.created) == (True, False, False)
    assert first.id == again.id == twin.id
    with pytest.raises(BadInput, match="belongs to another task"):
        runtime.submit(NewTask("system", "ping", {"say": "2"}, idempotency_key="k"))
    assert count(runtime) == 1


def test_a_submit_in_the_callers_transaction_rolls_back_with_it(runtime: Runtime) -> None:
    with pytest.raises(ZeroDivisionError), runtime.database.transaction() as connection:
        runtime.submit(NewTask("system", "ping"), session=connection)
        1 / 0  # noqa: B018
    assert count(runtime) == 0


def test_a_queued_task_is_cancelled_at_once_and_an_old_one_expires(runtime: Runtime) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=0.2)
    one, two = runtime.submit(NewTask("system", "ping"), NewTask("system", "ping", expires_at=soon))
    with runtime.database.statement() as connection:
        assert tasks.cancel(connection, one.id, "me") == "cancelled"
        assert tasks.cancel(connection, one.id, "me") is None
        connection.execute(text("select pg_sleep(0.3)"))
        assert tasks.expire(connection) == 1
        assert tasks.find(connection, str(two.id)).status == "expired"
        assert tasks.find(connection, str(one.id)[:-2]).status == "cancelled"


def test_a_submit_whose_answer_was_lost_makes_no_second_task(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit went through, the connection broke before the answer: the same rows are written again."""
    transaction = runtime.database.transaction
    lost = []

    @contextmanager
    def losing() -> Iterator[Connection]:
        with transaction() as connection:
            yield connection
        if not lost:
            lost.append(True)
            raise OperationalError("commit", {}, psycopg.OperationalError("the connection is lost"))

    monkeypatch.setattr(runtime.database, "transaction", losing)
    done = runtime.submit(NewTask("system", "ping"), NewTask("system", "ping", idempotency_key="k"))
    assert lost and [one.created for one in done] == [True, True]
    assert count(runtime) == 2
