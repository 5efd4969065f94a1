"""under a limit, one call ends runs and starts others"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# A procedure, because it commits twice: first without waiting for the disk, which frees the limits' lock for the other
# processes, then with waiting, so that a claim is durable before its answer leaves.
CLAIM_WITHIN_LIMITS = """
create procedure claim_within_limits(
  the_queue text, ended uuid[], ended_tokens uuid[], results text[],
  wanted uuid[], the_worker uuid, the_token uuid, horizon float, inout answer jsonb)
language plpgsql as $$
declare
  moment timestamptz;
  limit_keys text[];
  limit_names text[];   -- null: the limit is the whole queue's
  steps float[];        -- seconds between two starts; null: no rate
  aheads float[];       -- seconds from now to the next free slot
  mosts int[];          -- null: any number at once
  runnings int[];
  refusals int[];       -- how many this call has refused because of the rate: each of them waits for a slot of its own
  candidate record;
  allowed boolean;
  start_in float;
  is_full boolean;      -- as many run as may run at once
  is_own boolean;       -- a limit of the actor says no, not only one of the queue
  next_slot float;      -- seconds until the rates that say no allow a start
  taken uuid[] := '{}';
  slots float[] := '{}';
  refused jsonb := '{}';
begin
  perform set_config('synchronous_commit', 'off', true),
          -- Every statement below has one good plan; to make new ones for each call costs more than all the rest.
          set_config('plan_cache_mode', 'force_generic_plan', true);
  -- Their places are free for those below. Before the lock, which should be held for as short as can be.
  update tasks t set status = 'completed', result_payload = d.result::jsonb, finished_at = clock_timestamp(),
         updated_at = clock_timestamp(), token = null, progress = null, error_message = null, error_class = null,
         error_traceback = null
  from unnest(ended, ended_tokens, results) d(id, token, result) where t.id = d.id and t.token = d.token;
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

  refusals := array_fill(0, array[coalesce(array_length(limit_keys, 1), 0)]);

  for candidate in
    select t.id, t.task_name from tasks t
    -- status || '': else a planner that believes in few pending rows reads all of them, by the index of the due ones.
    where t.id = any(wanted) and t.queue = the_queue and t.status || '' = 'pending' and t.run_at <= moment
      and t.attempt < t.max_attempts and (t.expires_at is null or t.expires_at > moment)
      and exists (select from workers w where w.id = the_worker and not w.dead)
      and not exists (select from queue_states s where s.queue = the_queue and s.paused_at is not null
                      and (s.paused_until is null or s.paused_until > moment))
    order by t.priority, t.run_at, t.id for update skip locked
  loop
    allowed := true;
    start_in := 0;
    is_full := false;
    is_own := false;
    next_slot := 0;
    for i in 1 .. coalesce(array_length(limit_keys, 1), 0) loop
      if limit_names[i] is null or limit_names[i] = candidate.task_name then
        if runnings[i] >= mosts[i] then
          allowed := false;
          is_full := true;
          is_own := is_own or limit_names[i] is not null;
        end if;
        if steps[i] is not null then
          start_in := greatest(start_in, aheads[i]);
          if aheads[i] > horizon then
            allowed := false;
            is_own := is_own or limit_names[i] is not null;
            next_slot := greatest(next_slot, aheads[i] + refusals[i] * steps[i]);
            refusals[i] := refusals[i] + 1;
          end if;
        end if;
      end if;
    end loop;
    if not allowed then
      refused := refused || jsonb_build_object(
        candidate.id, jsonb_build_object('full', is_full, 'own', is_own, 'next_slot', next_slot));
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
    if array_length(taken, 1) > 0 and steps[i] is not null then
      update limits l set tat = moment + aheads[i] * interval '1 second' where l.key = limit_keys[i];
    end if;
  end loop;

  update tasks t set status = 'in_progress', attempt = t.attempt + 1, worker = the_worker, token = the_token,
         started_at = moment + g.slot * interval '1 second', updated_at = moment
  from unnest(taken, slots) g(id, slot) where t.id = g.id;

  -- With what an earlier call with the same token took, whose answer was lost.
  select jsonb_build_object('refused', refused, 'claimed',
    coalesce(jsonb_agg(jsonb_build_object('id', t.id, 'task_name', t.task_name, 'attempt', t.attempt,
      'max_attempts', t.max_attempts, 'params', t.params, 'user_id', t.user_id, 'bot_id', t.bot_id, 'chat', t.chat,
      'expires_at', t.expires_at, 'slot', greatest(0, extract(epoch from t.started_at - moment)))
      order by t.started_at, t.id), '[]'))
    into answer
    from tasks t where t.id = any(wanted) and t.token = the_token;
  commit;
  if jsonb_array_length(answer -> 'claimed') > 0 or array_length(ended, 1) > 0 then
    -- Something to commit, so that this commit waits until all before it is on disk.
    perform pg_logical_emit_message(true, 'chronos', '');
  end if;
end
$$
"""


def upgrade() -> None:
    # claim_limited stays: during a rolling deploy there are workers that call it.
    op.execute(CLAIM_WITHIN_LIMITS)


def downgrade() -> None:
    op.execute("drop procedure claim_within_limits(text, uuid[], uuid[], text[], uuid[], uuid, uuid, float, jsonb)")
