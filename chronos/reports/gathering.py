"""The figures of a period from the database, in three statements; its days are cut there, in the reader's time zone."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Row, text
from sqlalchemy.exc import DataError

from chronos.errors import BadInput
from chronos.models.period import Period, checked_zone
from chronos.reports.activity import Activity, Cause, Counts, Durations, Queue, Sends, Step, Unit
from chronos.reports.counting import COUNTS, DURATION, FINGERPRINT, IS_SAMPLE, IS_SAMPLE_SEND, TROUBLE, WORDS
from chronos.reports.histograms import percentile

#: Causes of failures that a report names.
CAUSES = 8
#: Longer periods are drawn by weeks.
MOST_DAYS_BY_DAY = 62
CAUSE = "cause"

# A day begins with its first quarter of an hour, also where the clock is put back or forward at midnight.
_BEGINS = text("""
select min(s) from unnest(cast(:days as date[])) d(day), lateral generate_series(
  d.day::timestamp at time zone 'UTC' - interval '15 hours', d.day::timestamp at time zone 'UTC' + interval '39 hours',
  interval '15 minutes') s
where (s at time zone :zone)::date >= d.day group by d.day order by d.day
""")

_TODAY = text("select clock_timestamp() as now, (clock_timestamp() at time zone :zone)::date as today")

_STEP = "width_bucket({at}, cast(:starts as timestamptz[]))"
# Rows are grouped by one number behind a fence: PostgreSQL hashes them then, else it sorts them, twice as slowly.
_ENDED = text(f"""
with old as materialized (
  select {_STEP.format(at="slot")} as step, * from pruned_activity
  where kind = 'task' and slot >= :from and slot < :until
), trouble as (
  select cause, queue, task_name, error_class, words, sample, number from old where cause <> '' and step > 0
  union all
  select {FINGERPRINT}, t.queue, t.task_name, t.error_class, {WORDS}, {IS_SAMPLE}, 1
  from tasks t where {TROUBLE} and t.finished_at >= :since and t.finished_at < :until
), packed as (
  select t.queue, t.status, ({_STEP.format(at="t.finished_at")} * 256 + {DURATION} + 1) * 2 + {IS_SAMPLE}::int as facts
  from tasks t where t.finished_at >= :from and t.finished_at < :until and {COUNTS}
  offset 0
), ended as (
  select facts / 512 as step, queue, status as outcome, facts / 2 % 256 - 1 as bucket, facts % 2 = 1 as sample,
         count(*) as number
  from packed group by queue, status, facts
  union all select step, queue, outcome, bucket, sample, number from old
)
select step, queue, outcome, bucket, bool_or(sample) as sample, sum(number)::bigint as number, null as task_name,
       null as error_class, null as words
from ended group by 1, 2, 3, 4
union all
(select null, min(queue), '{CAUSE}', null, bool_or(sample), sum(number)::bigint, min(task_name), min(error_class),
        min(words)
 from trouble group by cause order by 6 desc, 9 limit {CAUSES})
""")

_SENT = text(f"""
select outcome, bool_or(sample) as sample, sum(number)::bigint as number from (
  select outcome, sample, number from pruned_activity where kind = 'send' and slot >= :since and slot < :until
  union all
  select s.state, {IS_SAMPLE_SEND} as sample, count(*) from sends s
  where s.created_at >= :since and s.created_at < :until group by 1, 2
) s group by 1
""")

_WAITING = text("select count(*) from dead_letters where retried_at is null")


def gather(connection: Connection, period: Period | str, zone: str) -> Activity:
    """What ended in the period; BadInput, in one line, when it is no period or no time zone."""
    asked = Period.parse(period) if isinstance(period, str) else period
    zone = checked_zone(zone)
    try:
        now, today = connection.execute(_TODAY, {"zone": zone}).one()
    except DataError:
        raise BadInput(f"PostgreSQL does not know the time zone {zone!r}") from None
    first, last = asked.dates(today)
    length = (last - first).days + 1
    unit: Unit = "hour" if length == 1 else "day" if length <= MOST_DAYS_BY_DAY else "week"
    days = [first + timedelta(days=day) for day in range(0, length, 7 if unit == "week" else 1)]
    days = [first - timedelta(days=length), *days, last + timedelta(days=1)]
    before, *starts, until = connection.execute(_BEGINS, {"days": days, "zone": zone}).scalars()
    since = starts[0]
    if unit == "hour":
        hours = math.ceil((until - since) / timedelta(hours=1))  # 23 or 25 where the clock changes
        starts = [since + timedelta(hours=hour) for hour in range(hours)]
    span = {"from": before, "since": since, "until": until, "starts": starts}
    rows = connection.execute(_ENDED, span).all()
    sent = connection.execute(_SENT, span).all()
    within = [row for row in rows if row.step]
    return Activity(
        period=str(asked),
        first=first,
        last=last,
        zone=zone,
        made_at=now,
        unit=unit,
        counts=_counts(within),
        before=_counts([row for row in rows if row.step == 0]),
        steps=_steps(within, [start.astimezone(ZoneInfo(zone)) for start in starts]),
        queues=_queues(within),
        causes=[_cause(row) for row in rows if row.outcome == CAUSE],
        sends=Sends(**{"under_way" if row.outcome == "intent" else row.outcome: row.number for row in sent}),
        waiting_letters=connection.execute(_WAITING).scalar_one(),
        sample=any(row.sample for row in (*rows, *sent)),
    )


def _cause(row: Row[Any]) -> Cause:
    return Cause(
        queue=row.queue, task_name=row.task_name, error_class=row.error_class, words=row.words, number=row.number
    )


def _counts(rows: Iterable[Row[Any]]) -> Counts:
    numbers: Counter[str] = Counter()
    for row in rows:
        numbers[row.outcome] += row.number
    return Counts(**numbers)


def _steps(rows: Iterable[Row[Any]], starts: list[datetime]) -> list[Step]:
    """Of all bars, the empty ones too: a gap in a chart is a message."""
    of_step: dict[int, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        of_step[row.step].append(row)
    return [Step(start=start, counts=_counts(of_step[step])) for step, start in enumerate(starts, start=1)]


def _queues(rows: Iterable[Row[Any]]) -> list[Queue]:
    of_queue: dict[str, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        of_queue[row.queue].append(row)
    queues = [Queue(name=name, counts=_counts(found), durations=_durations(found)) for name, found in of_queue.items()]
    return sorted(queues, key=lambda queue: (-queue.counts.total, queue.name))


def _durations(rows: Iterable[Row[Any]]) -> Durations | None:
    histogram: Counter[int] = Counter()
    for row in rows:
        histogram[row.bucket] += row.number
    median, p95 = percentile(histogram, 0.5), percentile(histogram, 0.95)
    return None if median is None or p95 is None else Durations(median=median, p95=p95)
