"""Sample data: believable, marked, put once, only where nothing else is, and gone in time."""

from __future__ import annotations

from sqlalchemy import text

from chronos import housekeeping
from chronos.config import Settings
from chronos.reports.gathering import gather
from chronos.reports.sample import put_sample
from chronos.runtime import Runtime
from tests.reports.conftest import NOON, End


def put(runtime: Runtime) -> int:
    with runtime.database.transaction() as connection:
        return put_sample(connection)


def test_a_sample_is_a_week_of_tasks_that_the_report_calls_a_sample(runtime: Runtime) -> None:
    assert 1500 < put(runtime) < 5000
    with runtime.database.statement() as connection:
        week, month = gather(connection, "7d", "Europe/Moscow"), gather(connection, "30d", "UTC")
    assert week.sample and month.sample
    assert {queue.name for queue in week.queues} == {"post", "schedule", "delivery", "report", "broadcast"}
    assert week.counts.share is not None and 0.9 < week.counts.share < 1
    assert week.before.share is not None and len(week.causes) >= 4
    assert all(step.counts.completed > 20 for step in week.steps[:-1])
    assert min(week.sends.sent, week.sends.not_sent, week.sends.unknown) > 0
    assert month.counts.total > 3 * week.counts.total
    assert all(step.counts.total for step in month.steps[:-1])


def test_a_sample_is_put_once(runtime: Runtime) -> None:
    assert put(runtime) > 0
    with runtime.database.statement() as connection:
        before = gather(connection, "30d", "UTC")
        assert put(runtime) == 0
        assert gather(connection, "30d", "UTC").counts == before.counts


def test_a_database_with_work_of_its_own_gets_no_sample(runtime: Runtime, end: End) -> None:
    end(NOON)
    assert put(runtime) == 0
    with runtime.database.statement() as connection:
        assert connection.execute(text("select count(*) from tasks")).scalar() == 1


def test_housekeepings_own_tasks_do_not_keep_a_sample_away(runtime: Runtime, end: End) -> None:
    end(NOON, queue="system", name="keep_house")
    assert put(runtime) > 0


def test_a_sample_breaks_no_rule_of_the_tables_and_waits_for_nobody(runtime: Runtime) -> None:
    put(runtime)
    with runtime.database.statement() as connection:
        waiting = (
            "select count(*) from tasks where status in ('pending', 'in_progress') or phase is distinct from 'sample'"
        )
        assert connection.execute(text(waiting)).scalar() == 0
        future = "select count(*) from tasks where finished_at > clock_timestamp() or started_at > finished_at"
        assert connection.execute(text(future)).scalar() == 0
        assert connection.execute(text("select count(*) from dead_letters")).scalar() == 0


def test_a_sample_is_deleted_by_retention_and_counts_on(database_url: str) -> None:
    runtime = Runtime(Settings(database_url=database_url, keep_completed_days=0, keep_failed_days=0.000001))
    try:
        put(runtime)
        with runtime.database.statement() as connection:
            before = gather(connection, "30d", "UTC")
            housekeeping.prune(runtime)
            assert connection.execute(text("select count(*) from tasks")).scalar() == 0
            assert connection.execute(text("select count(*) from sends")).scalar() == 0
            after = gather(connection, "30d", "UTC")
        assert after.sample and (after.counts, after.sends, after.causes) == (
            before.counts,
            before.sends,
            before.causes,
        )
        assert put(runtime) == 0
    finally:
        runtime.close()
