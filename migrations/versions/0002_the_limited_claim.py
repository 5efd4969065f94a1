"""the limited claim

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# One round trip, so that the limits' lock is held for a moment and not for the way to a worker and back.
CLAIM_LIMITED = """
create function claim_limited(the_queue text, wanted uuid[], the_worker uuid, the_token uuid, horizon float)
returns table (id uuid, task_name text, attempt smallint, max_attempts smallint, params jsonb, user_id bigint,
               bot_id bigint, chat bigint, expires_at timestamptz, slot float, granted boolean, ask_again float)
language plpgsql volatile as $$
declare
  moment timestamptz;
  limit_keys text[];
  limit_names text[];   -- null: the limit is the whole queue's
  steps float[];        -- seconds between two starts; null: no rate
  aheads float[];       -- seconds from now to the next free slot
  mosts int[];          -- null: any number at once
  runnings int[];
  candidate record;
  allowed boolean;
  start_in float;
  taken uuid[] := '{}';
  slots float[] := '{}';
  refused uuid[] := '{}';
  wait float := 0.005;
begin
  -- Whoever waited for this lock counts with a fresh snapshot below: each statement takes its own.
  perform 1 from limits l where l.queue = the_queue order by l.key for update;
  moment := clock_timestamp();
  select array_agg(l.key), array_agg(l.task_name), array_agg(extract(epoch from l.step)::float),
         array_agg(extract(epoch from greatest(l.tat, moment - interval '1 hour') - moment)::float),
         array_agg(l.max_running),
         array_agg((select count(*) from tasks t where t.queue = the_queue and t.status = 'in_progress'
                    and (l.task_name is null or t.task_name = l.task_name))::int)
    into limit_keys, limit_names, steps, aheads, mosts, runnings
    from limits l where l.queue = the_queue;

  for candidate in
    select t.id, t.task_name from tasks t
    where t.id = any(wanted) and t.queue = the_queue and t.status = 'pending' and t.run_at <= moment
      and t.attempt < t.max_attempts and (t.expires_at is null or t.expires_at > moment)
      and exists (select from workers w where w.id = the_worker and not w.dead)
      and not exists (select from queue_states s where s.queue = the_queue and s.paused_at is not null
                      and (s.paused_until is null or s.paused_until > moment))
    order by t.priority, t.run_at, t.id for update skip locked
  loop
    allowed := true;
    start_in := 0;
    for i in 1 .. coalesce(array_length(limit_keys, 1), 0) loop
      if limit_names[i] is null or limit_names[i] = candidate.task_name then
        allowed := allowed and (mosts[i] is null or runnings[i] < mosts[i])
                           and (steps[i] is null or aheads[i] <= horizon);
        start_in := greatest(start_in, case when steps[i] is null then 0 else aheads[i] end);
      end if;
    end loop;
    if not allowed then
      refused := refused || candidate.id;
      continue;
    end if;
    for i in 1 .. coalesce(array_length(limit_keys, 1), 0) loop
      if limit_names[i] is null or limit_names[i] = candidate.task_name then
        runnings[i] := runnings[i] + 1;
        aheads[i] := case when steps[i] is null then aheads[i] else start_in + steps[i] end;
      end if;
    end loop;
    taken := taken || candidate.id;
    slots := slots || start_in;
  end loop;

  for i in 1 .. coalesce(array_length(limit_keys, 1), 0) loop
    -- A full limit is asked again soon, and at once when a run of the asking process ends.
    wait := greatest(wait, case when runnings[i] >= mosts[i] then 0.05 end,
                     case when steps[i] is not null then aheads[i] - horizon / 2 end);
    if array_length(taken, 1) > 0 and steps[i] is not null then
      update limits l set tat = moment + aheads[i] * interval '1 second' where l.key = limit_keys[i];
    end if;
  end loop;

  return query
    -- The answer to an earlier call with the same token was lost.
    select t.id, t.task_name, t.attempt, t.max_attempts, t.params, t.user_id, t.bot_id, t.chat, t.expires_at,
           greatest(0, extract(epoch from t.started_at - moment))::float, true, 0::float
    from tasks t where t.id = any(wanted) and t.token = the_token;
  return query
    update tasks t set status = 'in_progress', attempt = t.attempt + 1, worker = the_worker, token = the_token,
           started_at = moment + g.slot * interval '1 second', updated_at = moment
    from unnest(taken, slots) g(id, slot) where t.id = g.id
    returning t.id, t.task_name, t.attempt, t.max_attempts, t.params, t.user_id, t.bot_id, t.chat, t.expires_at,
              g.slot, true, 0::float;
  return query
    select r.id, null::text, null::smallint, null::smallint, null::jsonb, null::bigint, null::bigint, null::bigint,
           null::timestamptz, 0::float, false, wait
    from unnest(refused) r(id);
end
$$
"""


def upgrade() -> None:
    op.execute(CLAIM_LIMITED)


def downgrade() -> None:
    op.execute("drop function claim_limited(text, uuid[], uuid, uuid, float)")
