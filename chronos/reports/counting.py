"""What a row counts for in a report, as SQL: the same for rows that are there and for rows that are being deleted.

A task counts once, in the quarter of an hour in which it ended for the last time; a send in which it was begun.
Housekeeping, notices and alarms do not count, only their failures do: nobody asked for them.
"""

from __future__ import annotations

from chronos.models.task import ROUTINE
from chronos.reports.histograms import BUCKET, NONE

#: What marks sample data: a task's phase, and the beginning of a send's key.
SAMPLE = "sample"

#: Conditions and expressions on a row `t` of tasks.
TROUBLE = "t.status in ('failed', 'unknown')"
_ROUTINE = ", ".join(f"'{name}'" for name in ROUTINE)
COUNTS = f"(t.task_name not in ({_ROUTINE}) or {TROUBLE})"
DURATION = f"""case when t.status = 'completed' and t.started_at is not null
    then {BUCKET.format(span="t.finished_at - t.started_at")} else {NONE} end"""
FINGERPRINT = """md5(t.queue || ' ' || t.task_name || ' ' || coalesce(t.error_class, '') || ' '
    || regexp_replace(t.error_message, '[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]+', '#', 'g'))"""
IS_SAMPLE = f"coalesce(t.phase = '{SAMPLE}', false)"
IS_SAMPLE_SEND = f"s.key like '{SAMPLE}:%'"
WORDS = "left(t.error_message, 300)"

_SLOT = "date_bin('15 minutes', {at}, timestamptz '1970-01-01 00:00:00+00')"
_OF_TASKS = f"""
select {_SLOT.format(at="t.finished_at")} as slot, 'task' as kind, t.queue, t.status as outcome, {DURATION} as bucket,
  case when {TROUBLE} then {FINGERPRINT} else '' end as cause, {IS_SAMPLE} as sample, count(*) as number,
  case when {TROUBLE} then min(t.task_name) end, case when {TROUBLE} then min(t.error_class) end,
  case when {TROUBLE} then min({WORDS}) end
from gone t where {COUNTS} group by 1, 2, 3, 4, 5, 6, 7
"""

# An intent whose row goes had no known end.
_OF_SENDS = f"""
select {_SLOT.format(at="s.created_at")}, 'send', '', case s.state when 'intent' then 'unknown' else s.state end,
  {NONE}, '', {IS_SAMPLE_SEND}, count(*), null, null, null
from ledger s group by 1, 2, 3, 4, 5, 6, 7
"""

#: A part of the statement that deletes tasks and their sends, which it returns as `gone` and `ledger`. In the order of
#: the key, so that two of them at once cannot wait for each other.
KEEP_COUNTS = f"""
insert into pruned_activity as p
  (slot, kind, queue, outcome, bucket, cause, sample, number, task_name, error_class, words)
{_OF_TASKS}
union all
{_OF_SENDS}
order by 1, 2, 3, 4, 5, 6, 7
on conflict (slot, kind, queue, outcome, bucket, cause, sample) do update set number = p.number + excluded.number
"""
