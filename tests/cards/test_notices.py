"""Which moves of a task make a notice, as the database decides it, and what counts it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from chronos.engine import tasks
from chronos.models import FINAL, TaskStatus
from chronos.models.new_task import NewTask
from chronos.models.params import Alarm, Tell
from chronos.models.task import ROUTINE
from chronos.queues import policy_of
from chronos.reports.gathering import gather
from chronos.runtime import Runtime
from chronos.task_list import newest


@pytest.fixture(autouse=True)
def rows(runtime: Runtime) -> Iterator[Any]:
    def rows(statement: str, **facts: Any) -> list[Any]:
        with runtime.database.statement() as connection:
            result = connection.execute(text(statement), facts)
            return [tuple(row) for row in result] if result.returns_rows else []

    yield rows


def submit(runtime: Runtime, queue: str = "post", **facts: Any) -> uuid.UUID:
    return runtime.submit(NewTask(queue, "some_task", **{"user_id": 7, "bot_id": 8, "chat": 9, **facts}))[0].id


END = "update tasks set status = :status, finished_at = now(), error_message = 'x' where id = :id"


@pytest.mark.parametrize("status", sorted(FINAL))
def test_each_end_makes_one_notice_in_its_own_transaction(runtime: Runtime, rows: Any, status: TaskStatus) -> None:
    id_ = submit(runtime)
    with runtime.database.engine.connect() as connection:
        connection.execute(text(END), {"id": id_, "status": status})
        connection.rollback()
    assert rows("select 1 from tasks where task_name = 'tell'") == []
    rows(END, id=id_, status=status)
    rows("update tasks set updated_at = now(), status = status where id = :id", id=id_)
    assert rows("select user_id, bot_id, chat, queue, params, priority from tasks where task_name = 'tell'") == [
        (7, 8, 9, "system", {"task_id": str(id_)}, 3)
    ]


def test_a_task_that_ends_a_second_time_is_told_a_second_time(runtime: Runtime, rows: Any) -> None:
    id_ = submit(runtime)
    for _ in range(2):
        rows(END, id=id_, status="failed")
        with runtime.database.statement() as connection:
            tasks.revive(connection, [id_], "test")
    assert rows("select count(*) from tasks where task_name = 'tell'") == [(2,)]


def test_no_notice_without_a_chat_nor_of_system_work_nor_before_the_end(runtime: Runtime, rows: Any) -> None:
    rows(END, id=submit(runtime, chat=None), status="completed")
    rows(END, id=submit(runtime, queue="system"), status="completed")
    rows("update tasks set attempt = 1, run_at = now() where id = :id", id=submit(runtime))
    assert rows("select 1 from tasks where task_name = 'tell'") == []


def test_what_the_trigger_writes_is_what_the_code_would(runtime: Runtime, rows: Any) -> None:
    """Its literals are the policy's, its id is one of our own: version 7, of now, in the order of time."""
    rows("insert into bots (id) values (8)")
    rows(END, id=submit(runtime), status="completed")
    rows("select alarm_admins()")
    found = rows("select id, task_name, max_attempts, status, params from tasks where queue = 'system' order by id")
    assert [name for _, name, *_ in found] == ["tell", "alarm"]
    for id_, name, runs, status, params in found:
        assert runs == policy_of("system").runs and status == "pending" and name in ROUTINE
        assert id_.version == 7 and id_.variant == uuid.RFC_4122
        assert abs((id_.int >> 80) / 1000 - time.time()) < 60
        (Tell if name == "tell" else Alarm).model_validate(params)


def test_the_relay_is_woken_for_a_notice(runtime: Runtime, rows: Any) -> None:
    listening = runtime.database.connect()
    listening.autocommit = True
    listening.execute("listen chronos")
    id_ = submit(runtime)
    rows(END, id=id_, status="completed")
    heard = {note.payload for note in listening.notifies(timeout=5, stop_after=2)}
    listening.close()
    assert "due system" in heard


def test_notices_are_no_tasks_that_people_asked_for(runtime: Runtime, rows: Any) -> None:
    rows(END, id=submit(runtime), status="completed")
    rows("update tasks set status = 'completed', finished_at = now() where task_name = 'tell'")
    with runtime.database.statement() as connection:
        assert gather(connection, "today", "UTC").counts.total == 1
    assert [line.task_name for line in newest(runtime)] == ["some_task"]
    assert [line.task_name for line in newest(runtime, name="tell")] == ["tell"]
    assert [line.task_name for line in newest(runtime, queue="system")] == ["tell"]


def test_a_notice_that_failed_is_seen(runtime: Runtime, rows: Any) -> None:
    rows(END, id=submit(runtime), status="completed")
    rows("update tasks set status = 'failed', error_message = 'x', finished_at = now() where task_name = 'tell'")
    assert "tell" in [line.task_name for line in newest(runtime)]
