"""the end tells somebody: notices to the chat of a task, one line to the admins about what failed"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# Version 7, in the order of time like the ids that the code gives: housekeeping prunes by it.
UUID_OF_NOW = """
create function uuid_of_now() returns uuid language sql volatile as $$
  select encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing
    substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1),
    'hex')::uuid
$$
"""

# In the transaction of the move itself: there is no end without its notice, and no notice without its end.
TELL_THE_END = """
create function tell_the_end() returns trigger language plpgsql as $$
begin
  insert into tasks (id, user_id, bot_id, chat, queue, task_name, params, priority, max_attempts)
  values (uuid_of_now(), new.user_id, new.bot_id, new.chat, 'system', 'tell', jsonb_build_object('task_id', new.id), 3, 3);
  perform pg_notify('chronos', 'due system');
  return null;
end
$$
"""
TELL_TRIGGER = """
create trigger tasks_tell_the_end after update of status on tasks for each row
when (new.chat is not null and new.queue <> 'system' and new.status is distinct from old.status
      and new.status in ('completed', 'failed', 'unknown', 'cancelled', 'expired'))
execute function tell_the_end()
"""

# One alarm gathers for two seconds; the next one comes a minute after it at the earliest. What it tells it marks as
# told, so an alarm that has begun tells nothing of what comes later: that needs the next one. Nobody to tell: none.
ALARM_ADMINS = """
create function alarm_admins() returns void language plpgsql as $$
declare
  moment timestamptz := clock_timestamp();
  minute bigint := floor(extract(epoch from moment) / 60);
  latest record;
  due timestamptz := moment + interval '2 seconds';
begin
  if not exists (select from bots) then
    return;
  end if;
  select t.run_at, t.status = 'pending' and t.started_at is null as gathers into latest from tasks t
    where t.idempotency_key in ('alarm:' || (minute - 1), 'alarm:' || minute, 'alarm:' || (minute + 1))
    order by t.run_at desc limit 1;
  -- It may begin before we commit: half a second is for that.
  if found and latest.gathers and latest.run_at > moment + interval '500 milliseconds' then
    return;
  end if;
  if found then
    due := greatest(due, latest.run_at + interval '1 minute');
  end if;
  insert into tasks (id, queue, task_name, params, priority, max_attempts, run_at, wake_at, idempotency_key)
  values (uuid_of_now(), 'system', 'alarm', '{}', 3, 3, due, due,
          'alarm:' || floor(extract(epoch from due) / 60)::bigint)
  on conflict do nothing;
end
$$
"""
ALARM = """
create function alarm() returns trigger language plpgsql as $$
begin
  -- An alarm that fails is no reason for the next one. (An update has no task_id.)
  if not exists (select from tasks t where t.id = (to_jsonb(new) ->> 'task_id')::uuid and t.task_name = 'alarm') then
    perform alarm_admins();
  end if;
  return null;
end
$$
"""
ALARM_TRIGGERS = (
    "create trigger dead_letters_alarm after insert on dead_letters for each row execute function alarm()",
    """create trigger updates_alarm after update of put_aside_at on updates for each row
    when (new.put_aside_at is not null and old.put_aside_at is null) execute function alarm()""",
)


def upgrade() -> None:
    for table in ("dead_letters", "updates"):
        op.add_column(table, sa.Column("told_at", postgresql.TIMESTAMP(timezone=True), nullable=True))
    # What is there already is no news.
    op.execute("update dead_letters set told_at = clock_timestamp()")
    op.execute("update updates set told_at = clock_timestamp() where put_aside_at is not null")
    op.create_index(
        "dead_letters_untold_idx", "dead_letters", ["failed_at"], postgresql_where=sa.text("told_at is null")
    )
    for statement in (UUID_OF_NOW, TELL_THE_END, TELL_TRIGGER, ALARM_ADMINS, ALARM, *ALARM_TRIGGERS):
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    op.execute("drop trigger updates_alarm on updates")
    op.execute("drop trigger dead_letters_alarm on dead_letters")
    op.execute("drop function alarm()")
    op.execute("drop function alarm_admins()")
    op.execute("drop trigger tasks_tell_the_end on tasks")
    op.execute("drop function tell_the_end()")
    op.execute("drop function uuid_of_now()")
    op.drop_index("dead_letters_untold_idx", table_name="dead_letters", postgresql_where=sa.text("told_at is null"))
    for table in ("updates", "dead_letters"):
        op.drop_column(table, "told_at")
