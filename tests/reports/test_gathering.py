"""The figures of a period are those of the rows, also when the rows are gone."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from chronos import housekeeping
from chronos.errors import BadInput
from chronos.models.period import LONGEST_DAYS, Period
from chronos.reports.activity import Activity, Counts, Sends
from chronos.reports.gathering import gather
from chronos.runtime import Runtime
from tests.reports.conftest import NOON, End


def ago(days: float) -> datetime:
    return NOON - timedelta(days=days)


def report(runtime: Runtime, period: str = "7d", zone: str = "UTC") -> Activity:
    with runtime.database.statement() as connection:
        return gather(connection, period, zone)


def test_an_empty_database_gives_an_empty_week(runtime: Runtime) -> None:
    found = report(runtime)
    assert (found.counts, found.counts.share, found.slowest, found.sample) == (Counts(), None, None, False)
    assert len(found.steps) == found.days == 7


def test_tasks_count_by_how_they_ended_when_they_ended_and_where(runtime: Runtime, end: End) -> None:
    for status in ("completed", "completed", "failed", "unknown", "cancelled", "expired"):
        end(ago(1), status)
    end(ago(2), "completed", queue="report")
    end(ago(7), "failed")
    end(ago(14), "completed")
    found = report(runtime)
    assert found.counts == Counts(completed=3, failed=1, unknown=1, cancelled=1, expired=1)
    assert found.counts.share == 0.5
    assert found.before == Counts(failed=1)
    assert [step.counts.total for step in found.steps] == [0, 0, 0, 0, 1, 6, 0]
    assert {queue.name: queue.counts.total for queue in found.queues} == {"post": 6, "report": 1}


def test_a_task_that_has_not_ended_does_not_count(runtime: Runtime, end: End) -> None:
    end(ago(1))
    with runtime.database.statement() as connection:
        connection.execute(text("update tasks set status = 'pending', finished_at = null"))
    assert report(runtime).counts == Counts()


def test_housekeeping_counts_only_when_it_fails(runtime: Runtime, end: End) -> None:
    end(ago(1), queue="system", name="keep_house")
    end(ago(1), "failed", queue="system", name="keep_house")
    found = report(runtime)
    assert found.counts == Counts(failed=1)
    assert [cause.queue for cause in found.causes] == ["system"]


def test_failures_are_grouped_by_cause_the_most_frequent_first(runtime: Runtime, end: End) -> None:
    end(ago(1), "failed", error="something else")
    for chat in (17, 18, 19):
        end(ago(2), "failed", error=f"chat {chat} is gone", error_class="PermanentError")
    end(ago(8), "failed", error="long ago")
    causes = report(runtime).causes
    assert [(cause.number, cause.words) for cause in causes] == [(3, "chat 17 is gone"), (1, "something else")]
    assert causes[0].task_name == "some_task" and causes[0].error_class == "PermanentError"


def test_sends_count_by_their_state(runtime: Runtime, end: End) -> None:
    end(ago(1), sends={"a": "sent", "b": "sent", "c": "not_sent", "d": "unknown", "e": "intent"})
    end(ago(9), sends={"a": "sent"})
    assert report(runtime).sends == Sends(sent=2, not_sent=1, unknown=1, under_way=1)


def test_open_dead_letters_are_counted_whatever_their_age(runtime: Runtime, end: End) -> None:
    id_ = end(ago(1), "failed")
    with runtime.database.statement() as connection:
        connection.execute(
            text(
                "insert into dead_letters (id, task_id, original_queue, original_job_id, original_job_data,"
                " failed_at, failure_reason, attempts_made, fingerprint, retried_at)"
                " select gen_random_uuid(), i, 'post', 'x', '{}', now() - interval '90 days', 'x', 1, 'f', r"
                " from (values (cast(:id as uuid), null::timestamptz), (null, null), (null, now())) v(i, r)"
            ),
            {"id": id_},
        )
    assert report(runtime).waiting_letters == 2


def test_the_slowest_queue_is_the_one_with_the_longest_median_of_enough_runs(runtime: Runtime, end: End) -> None:
    for seconds in (1, 2, 3, 4, 5):
        end(ago(1), queue="post", seconds=seconds)
        end(ago(1), queue="schedule", seconds=0.1)
    end(ago(1), queue="delivery", seconds=500)
    slowest = report(runtime).slowest
    assert slowest is not None and slowest.durations is not None
    assert slowest.name == "post"
    assert slowest.durations.median == pytest.approx(3, rel=0.2)
    assert slowest.durations.p95 == pytest.approx(5, rel=0.2)


# ------------------------------------------------------------------------------------------------ what is deleted


def ten_weeks(end: End) -> None:
    for day in range(70):
        at = ago(day + 0.01 * day)
        end(at, seconds=0.01 * (day + 1), sends={"a": "sent", "b": "not_sent"}, phase="sample" if day == 60 else None)
        end(at, "cancelled", queue="report", seconds=None)
        end(at, "failed", error=f"chat {day} is gone", sends={"a": "unknown"})
        end(at, queue="system", name="keep_house")
    for _ in range(5):
        end(ago(20))


def everything(runtime: Runtime) -> list[Activity]:
    same = {"made_at": NOON}
    periods = ("today", "7d", "30d", f"{ago(20).date()}", f"{ago(40).date()}..{ago(5).date()}", "100d")
    return [
        report(runtime, period, zone).model_copy(update=same)
        for period in periods
        for zone in ("UTC", "Asia/Kathmandu")
    ]


def test_a_report_is_the_same_when_housekeeping_has_deleted_its_rows(runtime: Runtime, end: End) -> None:
    ten_weeks(end)
    before = everything(runtime)
    housekeeping.prune(runtime)
    with runtime.database.statement() as connection:
        assert connection.execute(text("select count(*) from tasks")).scalar_one() < 40
    assert everything(runtime) == before
    housekeeping.prune(runtime)
    assert everything(runtime) == before
    assert before[0].counts.total == 3 and before[4].counts.total == 95


def test_two_prunes_at_once_count_each_row_once(runtime: Runtime, end: End, monkeypatch: pytest.MonkeyPatch) -> None:
    ten_weeks(end)
    monkeypatch.setattr(housekeeping, "BATCH", 3)
    before = everything(runtime)
    errors: list[Exception] = []

    def prune() -> None:
        try:
            housekeeping.prune(runtime)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=prune) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert everything(runtime) == before


def test_a_prune_that_is_rolled_back_counts_nothing(runtime: Runtime, end: End) -> None:
    ten_weeks(end)
    before = everything(runtime)
    with runtime.database.engine.connect() as connection:
        transaction = connection.begin()
        connection.execute(
            housekeeping._PRUNE,
            {"after": "0" * 32, "before": "f" * 32, "statuses": ["completed"], "cleared": True, "days": 7, "rows": 50},
        )
        transaction.rollback()
    assert everything(runtime) == before


def test_figures_older_than_any_report_are_forgotten(runtime: Runtime, end: End) -> None:
    end(ago(LONGEST_DAYS * 2 + 1))
    housekeeping.prune(runtime)
    with runtime.database.statement() as connection:
        assert connection.execute(text("select count(*) from pruned_activity")).scalar() == 0


# ------------------------------------------------------------------------------------------------------ the clock

ZONES = [
    "UTC", "Europe/Moscow", "Europe/Berlin", "America/New_York", "America/Havana", "Africa/Cairo", "Asia/Kathmandu",
    "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Kiritimati", "Etc/GMT+12", "America/Santiago", "Asia/Beirut",
]  # fmt: skip


@given(
    zone=st.sampled_from(ZONES),
    first=st.dates(date(2023, 1, 1), date(2025, 10, 1)),
    length=st.integers(1, 40),
    moments=st.lists(st.floats(-2, 42), max_size=15),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_days_are_those_of_the_readers_zone(
    runtime: Runtime, end: End, zone: str, first: date, length: int, moments: list[float]
) -> None:
    last = first + timedelta(days=length - 1)
    midnight = datetime(first.year, first.month, first.day, tzinfo=UTC)
    ended = [midnight + timedelta(days=moment) for moment in moments]
    with runtime.database.statement() as connection:
        connection.execute(text("truncate tasks"))
    for at in ended:
        end(at)
    found = report(runtime, f"{first}..{last}", zone)
    expected = Counter(at.astimezone(ZoneInfo(zone)).date() for at in ended)
    days = [first + timedelta(days=day) for day in range(length)]
    assert found.counts.total == sum(expected[day] for day in days)
    if length > 1:
        assert [step.start.date() for step in found.steps] == days
        assert [step.counts.total for step in found.steps] == [expected[day] for day in days]


@pytest.mark.parametrize(
    ("day", "zone", "hours"),
    [("2025-10-26", "Europe/Berlin", 25), ("2025-03-30", "Europe/Berlin", 23), ("2025-07-01", "Europe/Berlin", 24)],
)
def test_a_single_day_has_a_step_for_each_of_its_hours(
    runtime: Runtime, end: End, day: str, zone: str, hours: int
) -> None:
    begin = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    for hour in range(-1, hours + 1):
        end(begin + timedelta(hours=hour, minutes=30))
    found = report(runtime, day, zone)
    assert [step.counts.total for step in found.steps] == [1] * hours
    assert (found.counts.total, found.before.total) == (hours, 1)
    assert found.steps[0].start.hour == 0 and found.steps[-1].start.hour == 23


def test_a_long_period_is_cut_into_weeks(runtime: Runtime, end: End) -> None:
    end(ago(99))
    end(ago(0))
    found = report(runtime, "100d")
    assert found.unit == "week" and len(found.steps) == 15
    assert (found.steps[0].counts.total, found.steps[-1].counts.total, found.counts.total) == (1, 1, 2)


# ------------------------------------------------------------------------------------------------------- periods


@pytest.mark.parametrize(
    ("given", "name", "dates"),
    [
        ("today", "today", ("2026-11-18", "2026-11-18")),
        ("1d", "today", ("2026-11-18", "2026-11-18")),
        (" 7D ", "7d", ("2026-11-12", "2026-11-18")),
        ("2026-11-16", "2026-11-16", ("2026-11-16", "2026-11-16")),
        ("2026-11-01..2026-11-15", "2026-11-01..2026-11-15", ("2026-11-01", "2026-11-15")),
        ("2026-11-10..2026-12-31", "2026-11-10..2026-12-31", ("2026-11-10", "2026-11-18")),
    ],
)
def test_a_period_is_whole_days_up_to_today(given: str, name: str, dates: tuple[str, str]) -> None:
    period = Period.parse(given)
    assert str(period) == name and Period.parse(str(period)) == period
    assert tuple(map(str, period.dates(date(2026, 11, 18)))) == dates


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "is no period: write today, 7d, 30d"),
        ("week", "'week' is no period"),
        ("7", "'7' is no period"),
        ("-7d", "is no period"),
        ("٧d", "is no period"),
        ("0d", "1 to 200 days, not 0"),
        ("999999d", "1 to 200 days"),
        ("2026-13-01", "is no period"),
        ("2026-11-1", "is no period"),
        ("2026-11-02..", "is no period"),
        ("2026-11-02..2026-11-01", "2026-11-01 is before 2026-11-02: write the earlier date first"),
        ("2025-01-01..2026-01-01", "1 to 200 days, not 366"),
        ("0001-01-01", "is no date of a report"),
        ("2026-11-18T10:00", "is no period"),
        ("today\x00", "is no period"),
    ],
)
def test_what_is_no_period_is_said_in_one_line(given: str, words: str) -> None:
    with pytest.raises(BadInput) as told:
        Period.parse(given)
    assert words in str(told.value) and "\n" not in str(told.value)


def test_a_period_in_the_future_and_an_unknown_zone_are_said_in_one_line(runtime: Runtime) -> None:
    for period, zone, words in (
        ("2999-01-01", "UTC", "is in the future"),
        ("7d", "Mars/Olympus", "'Mars/Olympus' is no time zone: write it as Europe/Moscow"),
        ("7d", "../../etc/passwd", "is no time zone"),
        ("7d", "", "is no time zone"),
        ("7d", "UTC+3", "is no time zone"),
    ):
        with pytest.raises(BadInput, match=words.replace("+", r"\+")):
            report(runtime, period, zone)


def test_figures_survive_their_way_through_json(runtime: Runtime, end: End) -> None:
    ten_weeks(end)
    found: Any = report(runtime, "30d", "Europe/Moscow")
    assert Activity.model_validate_json(found.model_dump_json()) == found
