"""Retention, the sweep and the statistics; each is one call, so nothing waits for a clock."""

from __future__ import annotations

import time
import uuid

import pytest
from sqlalchemy import text

from chronos import housekeeping
from chronos.config import Settings
from chronos.models.new_task import NewTask
from chronos.runtime import Runtime

DAY = 86400


def old_task(runtime: Runtime, status: str, days: float) -> uuid.UUID:
    """A task that ended so many days ago; ids of version 7 carry the time of their birth."""
    id_ = uuid.UUID(int=(int((time.time() - days * DAY) * 1000) << 80) | uuid.uuid4().int & (1 << 80) - 1)
    with runtime.database.transaction() as connection:
        connection.execute(
            text(
                "insert into tasks (id, queue, task_name, max_attempts, status, finished_at, error_message)"
                " values (:id, 'system', 'ping', 3, :status, clock_timestamp() - :days * interval '1 day', 'why')"
            ),
            {"id": id_, "status": status, "days": days},
        )
        connection.execute(text("insert into task_events (task_id, kind) values (:id, 'x')"), {"id": id_})
    return id_


def bury(runtime: Runtime, id_: uuid.UUID) -> None:
    with runtime.database.transaction() as connection:
        connection.execute(
            text(
                "insert into dead_letters (id, task_id, original_queue, original_job_id, original_job_data,"
                " failure_reason, attempts_made, fingerprint)"
                " values (gen_random_uuid(), :id, 'system', 'x', '{}', 'why', 3, 'f')"
            ),
            {"id": id_},
        )


def left(runtime: Runtime) -> set[uuid.UUID]:
    with runtime.database.statement() as connection:
        assert connection.execute(text("select count(*) from tasks")).scalar() == (
            connection.execute(text("select count(*) from task_events")).scalar()
        ), "events go with their tasks"
        return set(connection.execute(text("select id from tasks")).scalars())


def test_completed_rows_go_after_a_week_and_failed_ones_stay_until_cleared(runtime: Runtime) -> None:
    for status in ("completed", "cancelled", "expired"):
        old_task(runtime, status, 8)
    kept = {old_task(runtime, "completed", 6), old_task(runtime, "unknown", 400)}
    failed = old_task(runtime, "failed", 400)
    bury(runtime, failed)
    kept.add(failed)
    housekeeping.prune(runtime)
    assert left(runtime) == kept


def test_a_failed_row_goes_like_a_completed_one_when_its_dead_letter_was_cleared(runtime: Runtime) -> None:
    old_task(runtime, "failed", 8)
    kept = {old_task(runtime, "failed", 8), old_task(runtime, "failed", 6)}
    for id_ in kept:
        bury(runtime, id_)
    housekeeping.prune(runtime)
    assert left(runtime) == kept


def test_failed_rows_go_too_when_a_setting_says_so(database_url: str) -> None:
    runtime = Runtime(Settings(database_url=database_url, keep_failed_days=30))
    try:
        bury(runtime, old_task(runtime, "failed", 31))
        kept = {old_task(runtime, "failed", 29)}
        for id_ in kept:
            bury(runtime, id_)
        housekeeping.prune(runtime)
        assert left(runtime) == kept
    finally:
        runtime.close()


def test_one_prune_is_bounded_and_the_next_goes_on(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "BATCH", 2)
    monkeypatch.setattr(housekeeping, "MOST_BATCHES", 2)
    for _ in range(7):
        old_task(runtime, "completed", 8)
    housekeeping.prune(runtime)
    assert len(left(runtime)) == 3
    housekeeping.prune(runtime)
    assert left(runtime) == set()


def test_a_task_that_still_waits_is_never_pruned(runtime: Runtime) -> None:
    id_ = runtime.submit(NewTask("system", "ping"))[0].id
    with runtime.database.statement() as connection:
        connection.execute(text("update tasks set created_at = created_at - interval '90 days'"))
        connection.execute(text("insert into task_events (task_id, kind) values (:id, 'x')"), {"id": id_})
    housekeeping.prune(runtime)
    assert left(runtime) == {id_}


def test_the_statistics_of_a_queue_are_a_row(runtime: Runtime) -> None:
    runtime.submit(NewTask("system", "ping"), NewTask("system", "ping"), NewTask("post", "ping"))
    housekeeping.take_statistics(runtime)
    with runtime.database.statement() as connection:
        rows = connection.execute(text("select queue, statistics from queue_states")).all()
    due = {queue: statistics["due"] for queue, statistics in rows}
    assert (due["system"], due["post"], due["report"]) == (2, 1, 0)


def test_what_the_chat_no_longer_needs_is_pruned(runtime: Runtime) -> None:
    gone, kept = old_task(runtime, "completed", 8), old_task(runtime, "completed", 6)
    with runtime.database.transaction() as connection:
        for id_ in (gone, kept):
            connection.execute(
                text("insert into cards (task_id, bot_id, chat, locale) values (:id, 1, 1, 'ru')"), {"id": id_}
            )
        connection.execute(
            text(
                "insert into updates (bot_id, update_id, chat, payload, handled_at) values"
                " (1, 1, 1, '{}', clock_timestamp() - interval '3 days'),"
                " (1, 2, 1, '{}', clock_timestamp() - interval '1 day'), (1, 3, 1, '{}', null)"
            )
        )
        connection.execute(
            text(
                "insert into budgets (key, tat, held_until) values ('bot:1', '-infinity', null),"
                " ('chat:1:1', clock_timestamp() - interval '2 hours', null),"
                " ('chat:1:2', '-infinity', clock_timestamp() + interval '1 hour')"
            )
        )
    housekeeping.prune(runtime)
    with runtime.database.statement() as connection:
        assert list(connection.execute(text("select task_id from cards")).scalars()) == [kept]
        assert list(connection.execute(text("select update_id from updates order by 1")).scalars()) == [2, 3]
        assert list(connection.execute(text("select key from budgets order by 1")).scalars()) == ["bot:1", "chat:1:2"]
