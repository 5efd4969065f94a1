"""What a row counts for in a report, as SQL: the same for rows that are there and for rows that are being deleted.

A task counts once, in the quarter of an hour in which it ended for the last time; a send in which it was begun.
Routine housekeeping does not count, only its failures do: nobody waits for it.
"""

from __future__ import annotations

from chronos.reports.histograms import BUCKET, NONE

#: Columns of a count, in the order of the statements below.
COLUMNS = "slot, kind, queue, outcome, bucket, cause, sample, number, task_name, error_class, words"
#: What marks sample data: a task's phase, and the beginning of a send's key.
SAMPLE = "sample"

_SLOT = "date_bin('15 minutes', {at}, timestamptz '1970-01-01 00:00:00+00')"
_TROUBLE = "t.status in ('failed', 'unknown')"

#: `{source}`: tasks, or rows of them; `{where}`: which.
OF_TASKS = f"""
select {_SLOT.format(at="t.finished_at")} as slot, 'task' as kind, t.queue, t.status as outcome,
  case when t.status = 'completed' and t.started_at is not null
    then {BUCKET.format(span="t.finished_at - t.started_at")} else {NONE} end as bucket,
  case when {_TROUBLE} then md5(t.queue || ' ' || t.task_name || ' ' || coalesce(t.error_class, '') || ' '
    || regexp_replace(t.error_message, '[0-9a-f]{{{{8}}}}-[0-9a-f-]{{{{27}}}}|[0-9]+', '#', 'g')) else '' end as cause,
  coalesce(t.phase = '{SAMPLE}', false) as sample, count(*) as number,
  case when {_TROUBLE} then min(t.task_name) end as task_name,
  case when {_TROUBLE} then min(t.error_class) end as error_class,
  case when {_TROUBLE} then min(left(t.error_message, 300)) end as words
from {{source}} t
where t.finished_at is not null and (t.task_name <> 'keep_house' or {_TROUBLE}) and {{where}}
group by 1, 2, 3, 4, 5, 6, 7
"""

#: An intent whose row goes had no known end.
OF_SENDS = f"""
select {_SLOT.format(at="s.created_at")} as slot, 'send' as kind, '' as queue, {{state}} as outcome,
  {NONE} as bucket, '' as cause, s.key like '{SAMPLE}:%' as sample, count(*) as number,
  null::text as task_name, null::text as error_class, null::text as words
from {{source}} s where {{where}}
group by 1, 2, 3, 4, 5, 6, 7
"""

#: A part of the statement that deletes tasks and their sends, which it returns as `gone` and `ledger`. In the order of the
#: key, so that two of them at once cannot wait for each other.
KEEP_COUNTS = f"""
insert into pruned_activity as p ({COLUMNS})
{OF_TASKS.format(source="gone", where="true")}
union all
{OF_SENDS.format(source="ledger", state="case s.state when 'intent' then 'unknown' else s.state end", where="true")}
order by 1, 2, 3, 4, 5, 6, 7
on conflict (slot, kind, queue, outcome, bucket, cause, sample) do update set number = p.number + excluded.number
"""
