"""Why is this not running: every reason is named, with the time when the task will move."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from chronos import queue_control
from chronos.engine import tasks
from chronos.engine.tasks import Claimed
from chronos.explain import Story, explain
from chronos.models.new_task import NewTask
from chronos.runtime import Runtime

LEASE = 600.0  # long, so that no slow machine turns a living worker into a dead one


@pytest.fixture(autouse=True)
def _long_lease(runtime: Runtime) -> None:
    runtime.settings.lease_seconds = LEASE


def sql(runtime: Runtime, statement: str, **values: Any) -> None:
    with runtime.database.statement() as connection:
        connection.execute(text(statement), values)


def worker(runtime: Runtime, *, silent: float = 0.0, dead: bool = False, threads: int = 4) -> uuid.UUID:
    """A worker's row, as a process of that name would have left it."""
    id_ = uuid.uuid4()
    sql(
        runtime,
        "insert into workers (id, name, host, pid, process_start, queues, threads, beat_at, dead, death) values (:id,"
        " 'anna', 'there', 1, '', '[\"post\", \"system\"]', :threads, clock_timestamp() - :silent * interval '1 s',"
        " :dead, case when :dead then 'its process is gone' end)",
        id=id_, threads=threads, silent=silent, dead=dead,
    )  # fmt: skip
    return id_


def limit(runtime: Runtime, *, most: int | None = None, step: float | None = None, ahead: float = 0.0) -> None:
    sql(
        runtime,
        "insert into limits (key, queue, step, max_running, tat) values ('queue:post', 'post',"
        " cast(:step as float) * interval '1 s', :most, clock_timestamp() + :ahead * interval '1 s')",
        step=step, most=most, ahead=ahead,
    )  # fmt: skip


def submitted(runtime: Runtime, queue: str = "post", **facts: Any) -> uuid.UUID:
    return runtime.submit(NewTask(queue, "ping", **facts))[0].id


def started(runtime: Runtime, id_: uuid.UUID, worker_: uuid.UUID) -> Claimed:
    token = uuid.uuid4()
    sql(
        runtime,
        "update tasks set status = 'in_progress', attempt = attempt + 1, worker = :worker, token = :token,"
        " started_at = clock_timestamp() where id = :id",
        id=id_, worker=worker_, token=token,
    )  # fmt: skip
    return Claimed(id_, token, "post", "ping", 1, 5, {}, None, None, None, None)


def told(runtime: Runtime, id_: uuid.UUID) -> Story:
    with runtime.database.statement() as connection:
        found = tasks.find(connection, str(id_))
    return explain(runtime, found)


def seconds_until(moment: datetime | None) -> float:
    assert moment is not None
    return (moment - datetime.now(UTC)).total_seconds()


def test_a_task_that_nothing_holds_up_is_about_to_be_taken(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    worker(runtime)
    assert "is due and will be taken at once by the one living worker" in told(runtime, id_).now


def test_a_missing_worker_is_named_with_what_to_run(runtime: Runtime) -> None:
    story = told(runtime, submitted(runtime))
    assert "waits: no worker serves queue post" in story.now and story.advice == ["chronos worker"]


def test_a_worker_that_died_unnoticed_counts_as_missing(runtime: Runtime) -> None:
    """After kill -9 of the last worker nobody marks it dead."""
    worker(runtime, silent=2 * LEASE)
    story = told(runtime, submitted(runtime))
    assert "no living worker serves queue post; anna was last seen 20 min ago" in story.now


def test_a_pause_is_named_with_its_end(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    worker(runtime)
    queue_control.pause(runtime, "post", timedelta(minutes=10))
    story = told(runtime, id_)
    assert "waits: queue post is paused until" in story.now
    assert 500 < seconds_until(story.moves_at) < 600
    assert story.advice == ["chronos queue resume post"]


def test_a_pause_without_end_moves_when_somebody_resumes_it(runtime: Runtime) -> None:
    queue_control.pause(runtime, "post")
    story = told(runtime, submitted(runtime))
    assert "paused until it is resumed" in story.now and story.moves_at is None


def test_a_schedule_is_named_and_a_longer_pause_on_top_of_it_counts(runtime: Runtime) -> None:
    id_ = submitted(runtime, run_at=datetime.now(UTC) + timedelta(minutes=5))
    story = told(runtime, id_)
    assert "waits for its time" in story.now and 200 < seconds_until(story.moves_at) < 300
    queue_control.pause(runtime, "post", timedelta(minutes=10))
    story = told(runtime, id_)
    assert "is paused until" in story.now and 500 < seconds_until(story.moves_at) < 600


def test_a_backoff_is_named_with_the_last_error(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    run = started(runtime, id_, worker(runtime))
    with runtime.database.statement() as connection:
        tasks.retry(connection, run, 30, {"message": "the disk is full", "class": "Full", "traceback": ""})
    story = told(runtime, id_)
    assert re.search(r"waits until .*: run 1 of 5 failed \(the disk is full\)", story.now)
    assert 10 < seconds_until(story.moves_at) <= 30
    assert "retry (run 1): the disk is full" in [event.what for event in story.events]


def test_later_is_told_with_the_actors_reason(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    run = started(runtime, id_, worker(runtime))
    with runtime.database.statement() as connection:
        tasks.later(connection, run, 30, "Telegram said: slow down")
    assert "its actor asked for that (Telegram said: slow down)" in told(runtime, id_).now


def test_a_full_concurrency_limit_is_named(runtime: Runtime) -> None:
    first, second = submitted(runtime), submitted(runtime)
    started(runtime, first, worker(runtime))
    limit(runtime, most=1)
    story = told(runtime, second)
    assert "queue post may run 1 at once, and 1 run; it moves when one of them ends" in story.now
    assert 60 < seconds_until(story.moves_at) <= 120  # the time limit of the queue


def test_a_rate_limit_is_named_with_the_next_free_slot(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    worker(runtime)
    limit(runtime, step=3, ahead=20)
    story = told(runtime, id_)
    assert re.search(r"queue post may start 20/min, the next one in \d+ s", story.now)
    assert 1 < seconds_until(story.moves_at) <= 20


def test_busy_threads_are_named_and_who_comes_first(runtime: Runtime) -> None:
    first, second, third = (submitted(runtime) for _ in range(3))
    started(runtime, first, worker(runtime, threads=1))
    assert "waits for a free thread: all 1 are busy" in told(runtime, second).now
    assert "1 due ones are before it" in told(runtime, third).now


def test_a_task_that_no_worker_knows_says_when_it_fails(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    worker(runtime)
    with runtime.database.statement() as connection:
        tasks.refuse(connection, [id_], "no actor 'ping' in this worker", 10)
    story = told(runtime, id_)
    assert "waits for a worker that knows it (no actor 'ping' in this worker); it fails at" in story.now
    assert 500 < seconds_until(story.moves_at) <= 600


def test_a_run_says_where_how_far_and_until_when_at_the_latest(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    started(runtime, id_, worker(runtime))
    sql(runtime, 'update tasks set progress = \'{"done": 4, "total": 10}\'')
    story = told(runtime, id_)
    assert re.search(r"runs since \S+, run 1 of 5, on anna, 40 %", story.now)
    assert 60 < seconds_until(story.moves_at) <= 120


def test_a_run_that_was_asked_to_stop_says_so(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    started(runtime, id_, worker(runtime))
    with runtime.database.statement() as connection:
        assert tasks.cancel(connection, id_, "me") == "in_progress"
    story = told(runtime, id_)
    assert "it was asked to stop" in story.now
    assert any(event.what.startswith("cancel asked") and "me" in event.what for event in story.events)


def test_a_worker_that_missed_two_beats_is_stuck(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    started(runtime, id_, worker(runtime, silent=LEASE * 0.8))
    story = told(runtime, id_)
    assert "is stuck: its worker anna missed two beats" in story.now and "it is dead and the task is taken" in story.now


@pytest.mark.parametrize("another", [True, False])
def test_a_dead_worker_is_named_and_who_takes_the_task_back(runtime: Runtime, another: bool) -> None:
    id_ = submitted(runtime)
    started(runtime, id_, worker(runtime, dead=True))
    if another:
        worker(runtime)
    story = told(runtime, id_)
    assert "its worker anna is dead (its process is gone): " in story.now
    assert ("taken back within 2 s" in story.now) is another
    assert story.advice == ([] if another else ["chronos worker"])


def test_an_unknown_one_says_what_a_person_can_do(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    run = started(runtime, id_, worker(runtime))
    sql(runtime, "insert into sends (task_id, key, state) values (:id, 'welcome', 'intent')", id=id_)
    with runtime.database.statement() as connection:
        tasks.doubt(connection, run, {"message": "the connection was cut", "class": "Cut", "traceback": ""})
    story = told(runtime, id_)
    assert "ended as unknown" in story.now and "the connection was cut" in story.now and "welcome" in story.now
    assert story.advice == [f"chronos task arrived {id_}", f"chronos task retry {id_}"]
    with runtime.database.statement() as connection:
        assert tasks.mark_arrived(connection, id_, "me")
    assert "was completed" in told(runtime, id_).now


def test_an_expired_one_does_not_pretend_that_it_will_move(runtime: Runtime) -> None:
    id_ = submitted(runtime)
    worker(runtime)
    sql(runtime, "update tasks set expires_at = clock_timestamp() - interval '1 minute'")
    story = told(runtime, id_)
    assert "will not run any more" in story.now and story.moves_at is None and story.advice == []
