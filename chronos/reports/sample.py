"""A believable activity of a small service, marked as sample data, so that the first report is worth looking at.

Its last week are rows of tasks and sends; of the weeks before there is what housekeeping would have left of them.
Retention deletes it like anything else.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

from chronos.reports.counting import KEEP_COUNTS, SAMPLE
from chronos.telegram.reasons import SENTENCES

#: How far back it goes, and how far back there are rows.
DAYS, DAYS_OF_ROWS = 60, 7

#: queue, task, runs per hour at noon, median seconds, spread of the seconds, share that fails, why, its class.
_KINDS = f"""
  ('post', 'publish_post', 13.0, 0.42, 0.55, 0.012, '{SENTENCES["no rights"]}', 'PermanentError'),
  ('schedule', 'remind', 17.0, 0.18, 0.45, 0.005, '{SENTENCES["blocked"]}', 'PermanentError'),
  ('delivery', 'deliver_file', 5.0, 21.0, 0.95, 0.030, 'the source answered 503: try again later', 'SourceError'),
  ('report', 'report', 2.6, 2.3, 0.40, 0.012, 'TimeLimitExceeded', 'TimeLimitExceeded'),
  ('broadcast', 'send_broadcast', 0.7, 95.0, 0.70, 0.020, '{SENTENCES["kicked"]}', 'PermanentError')
"""


def _random(of: str, seed: int) -> str:
    """Between 0 and 1, the same each time."""
    return f"(((hashtextextended({of}, {seed}) & 1048575) + 0.5::float8) / 1048576)"


# Office hours in two humps, quiet weekends, slow growth, and one bad afternoon of the deliveries.
_PUT = text(f"""
with kind(queue, task_name, hourly, median, spread, bad, why, error_class) as (values {_KINDS}),
hour as (
  select h as at, date_part('hour', h at time zone 'UTC') as hour, date_part('isodow', h at time zone 'UTC') as day,
         date_part('epoch', m.now - h) / 86400 as age, m.now
  from (select clock_timestamp() as now) m,
    lateral generate_series(date_trunc('hour', m.now) - interval '{DAYS} days', m.now, interval '1 hour') h
  where not exists (select from tasks where task_name <> 'keep_house') and not exists (select from pruned_activity)
), run as (
  select k.*, h.*, n, k.queue || h.at::text || n as name
  from hour h cross join kind k, lateral generate_series(1, floor(
    k.hourly::float8
    * (exp(-power((h.hour - 8) / 2.6::float8, 2)) + 0.85 * exp(-power((h.hour - 14.5) / 3.2::float8, 2)) + 0.04)
    * case h.day when 6 then 0.45 when 7 then 0.35 else 1 end * (1 - h.age / {DAYS} * 0.3)
    + {_random("k.queue || h.at::text", 1)})::int) n
), drawn as (
  select *,
    at + {_random("name", 2)} * interval '1 hour' as created_at, {_random("name", 3)} as luck,
    median::float8 * exp(spread::float8 * sqrt(-2 * ln({_random("name", 4)}))
      * cos(2 * pi() * {_random("name", 5)})) as seconds,
    bad * case when queue = 'delivery' and age between 2 and 4 and day < 6 and hour between 11 and 15 then 9
               else 1 end as risk
  from run
), made as materialized (
  select (lpad(to_hex(floor(date_part('epoch', created_at) * 1000)::bigint), 12, '0') || '7' || substr(md5(name), 1, 3)
          || 'a' || substr(md5(name), 4, 15))::uuid as id, queue, task_name, created_at, now,
    created_at + 0.05 * interval '1 second' as started_at,
    created_at + (0.05 + seconds) * interval '1 second' as finished_at,
    case when luck < risk then 'failed' when luck > 0.9988 then 'unknown' when luck > 0.993 then 'cancelled'
         else 'completed' end as status,
    case when luck < risk then why
         when luck > 0.9988 then '{SENTENCES["unsure"].replace("'", "''")}' end as error_message,
    case when luck < risk then error_class when luck > 0.9988 then 'Ambiguous' end as error_class, '{SAMPLE}' as phase
  from drawn
), ended as (select *, finished_at < now - interval '{DAYS_OF_ROWS} days' as is_old from made where finished_at < now),
gone as (select * from ended where is_old),
begun as (
  select e.id as task_id, '{SAMPLE}:' || n as key, e.started_at as created_at, e.is_old,
    case when e.status <> 'completed' then replace(e.status, 'failed', 'not_sent')
         when e.queue = 'broadcast' and {_random("e.id::text || n", 6)} < 0.02 then 'not_sent' else 'sent' end as state
  from ended e, lateral generate_series(1, case e.queue when 'broadcast' then 24 else 1 end) n
  where e.status <> 'cancelled' and (e.queue <> 'delivery' or e.status <> 'failed')
), ledger as (select * from begun where is_old),
sent as (
  insert into sends (task_id, key, state, created_at, updated_at)
  select task_id, key, state, created_at, created_at from begun where not is_old
), counts as ({KEEP_COUNTS}), put as (
  insert into tasks (id, queue, task_name, phase, status, attempt, max_attempts, run_at, wake_at, created_at,
                     started_at, finished_at, updated_at, error_message, error_class)
  select id, queue, task_name, phase, status, 1, 5, created_at, created_at, created_at, started_at, finished_at,
         finished_at, error_message, error_class from ended where not is_old order by id
  returning 1
)
select count(*) from put
""")


def put_sample(connection: Connection) -> int:
    """How many tasks were put; 0: the database has had work of its own, or the sample already.

    For the sandbox only, which its caller knows; in one transaction, so that two at once put it once.
    """
    connection.execute(text("select pg_advisory_xact_lock(7240118)"))
    return int(connection.execute(_PUT).scalar_one())
