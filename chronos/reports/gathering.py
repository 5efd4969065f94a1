"""The figures of a period from the database, in three statements; its days are cut there, in the reader's time zone."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Row, text
from sqlalchemy.exc import DataError

from chronos.errors import BadInput
from chronos.models.period import Period, checked_zone
from chronos.reports.activity import Activity, Cause, Counts, Durations, Queue, Sends, Step, Unit
from chronos.reports.counting import COLUMNS, OF_SENDS, OF_TASKS
from chronos.reports.histograms import percentile

#: Causes of failures that a report names.
CAUSES = 8
#: Longer periods are drawn by weeks.
MOST_DAYS_BY_DAY = 62
CAUSE = "cause"

# A day begins with its first quarter of an hour, also where the clock is put back or forward at midnight.
_BOUNDS = text("""
select d.day, min(s) as starts from unnest(cast(:days as date[])) d(day), lateral generate_series(
  d.day::timestamp at time zone 'UTC' - interval '15 hours', d.day::timestamp at time zone 'UTC' + interval '39 hours',
  interval '15 minutes') s
where (s at time zone :zone)::date >= d.day group by d.day order by d.day
""")

_TODAY = text("select clock_timestamp() as now, (clock_timestamp() at time zone :zone)::date as today")

_COUNTED = f"""
  select {COLUMNS} from pruned_activity where kind = '{{kind}}' and slot >= :from and slot < :until
  union all {{live}}
"""
_TASKS = _COUNTED.format(
    kind="task",
    live=OF_TASKS.format(source="tasks", where="t.finished_at >= :from and t.finished_at < :until"),
)
_SENDS = _COUNTED.format(
    kind="send",
    live=OF_SENDS.format(
        source="sends", state="s.state", where="s.created_at >= :from and s.created_at < :until"
    ),
)

_ENDED = text(f"""
with counted as materialized ({_TASKS}),
cut as (
  select case when slot < :starts then null
              when cast(:by_hour as boolean) then date_part('epoch', slot - :starts)::int / 3600
              else (slot at time zone :zone)::date - cast(:first as date) end as step, * from counted
)
select step, queue, outcome, bucket, bool_or(sample) as sample, sum(number)::bigint as number,
       null as task_name, null as error_class, null as words
from cut group by 1, 2, 3, 4
union all
(select null, min(queue), '{CAUSE}', -1, bool_or(sample), sum(number)::bigint, min(task_name), min(error_class), min(words)
 from counted where cause <> '' and slot >= :starts group by cause order by 6 desc, 9 limit {CAUSES})
""")

_SENT = text(f"""
select outcome, bool_or(sample) as sample, sum(number)::bigint as number from ({_SENDS}) s group by 1
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
    days = [first - timedelta(days=length), first, last + timedelta(days=1)]
    before, starts, until = (row.starts for row in connection.execute(_BOUNDS, {"days": days, "zone": zone}))
    unit: Unit = "hour" if length == 1 else "day" if length <= MOST_DAYS_BY_DAY else "week"
    span = {"from": before, "starts": starts, "until": until, "first": first, "zone": zone, "by_hour": unit == "hour"}
    rows = connection.execute(_ENDED, span).all()
    sent = connection.execute(_SENT, {"from": starts, "until": until}).all()
    within = [row for row in rows if row.step is not None]
    return Activity(
        period=str(asked),
        first=first,
        last=last,
        zone=zone,
        made_at=now,
        unit=unit,
        counts=_counts(within),
        before=_counts([row for row in rows if row.step is None and row.outcome != CAUSE]),
        steps=_steps(within, unit, _begins(unit, starts, until, first, ZoneInfo(zone))),
        queues=_queues(within),
        causes=[Cause(**{name: getattr(row, name) for name in Cause.model_fields}) for row in rows if row.outcome == CAUSE],
        sends=Sends(**{"under_way" if row.outcome == "intent" else row.outcome: row.number for row in sent}),
        waiting_letters=connection.execute(_WAITING).scalar_one(),
        sample=any(row.sample for row in (*rows, *sent)),
    )


def _counts(rows: Iterable[Row[Any]]) -> Counts:
    numbers: Counter[str] = Counter()
    for row in rows:
        numbers[row.outcome] += row.number
    return Counts(**numbers)


def _begins(unit: Unit, starts: datetime, until: datetime, first: date, here: ZoneInfo) -> list[datetime]:
    """Of every bar, the empty ones too: a gap in a chart is a message."""
    if unit == "hour":
        hours = math.ceil((until - starts) / timedelta(hours=1))  # 23 or 25 where the clock changes
        return [(starts + timedelta(hours=hour)).astimezone(here) for hour in range(hours)]
    days = round((until - starts) / timedelta(days=1))
    return [
        datetime.combine(first + timedelta(days=day), time(), here)
        for day in range(0, days, 7 if unit == "week" else 1)
    ]


def _steps(rows: Iterable[Row[Any]], unit: Unit, begins: list[datetime]) -> list[Step]:
    of_step: dict[int, list[Row[Any]]] = defaultdict(list)
    for row in rows:
        of_step[row.step // (7 if unit == "week" else 1)].append(row)
    return [Step(start=begin, counts=_counts(of_step[index])) for index, begin in enumerate(begins)]


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
