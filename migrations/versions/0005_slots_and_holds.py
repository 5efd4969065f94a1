"""slots of the budget, and holds after a 429"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Whoever touches a budget of a bot locks the bot's row first: so nothing below it needs a lock, nothing can deadlock,
# and what one process reads here no other can change until it has taken its slots.
LOCK_BUDGET = """
create function lock_budget(bot_key text) returns budgets language plpgsql as $$
declare
  found_row budgets;
begin
  loop
    select * into found_row from budgets b where b.key = bot_key for update;
    if found then
      return found_row;
    end if;
    insert into budgets (key) values (bot_key) on conflict do nothing;
  end loop;
end
$$
"""

# asks, in the order in which they are to be served: {chat, counts: send | edit | nothing, size (messages at once),
# unpaid (nobody can pay for it), tolerance}
# answers, in the same order, one of: {wait, slot} granted; {again} no slot taken, ask again after so many seconds;
# {held} nothing may leave for so many seconds; {stopped}; {moved} the chat has this id by now: ask for that.
TAKE_SLOTS = """
create function take_slots(the_bot bigint, is_paid boolean, rates jsonb, asks jsonb) returns jsonb
language plpgsql as $$
declare
  bot_key text := 'bot:' || the_bot;
  own budgets;
  moment timestamptz;
  stopped text;
  bot_ahead float;     -- seconds from now to the bot's next free slot
  free_ahead float;    -- of a bot that pays: the same for what cannot be paid for
  bot_held float;
  chat_aheads jsonb;   -- key -> seconds to its next free slot, as this call leaves them
  chat_helds jsonb;
  chat_kinds jsonb;    -- chat -> {kind, moved}
  changed text[] := '{}';
  ask jsonb;
  answers jsonb := '[]';
  chat_key text;
  rate_key text;
  rate jsonb;
  size int;
  ahead float;
  wait float;
  chat_wait float;
  held float;
  answer jsonb;
begin
  perform set_config('synchronous_commit', 'off', true);
  own := lock_budget(bot_key);
  moment := clock_timestamp();
  select b.stopped_why into stopped from bots b where b.id = the_bot;
  bot_ahead := greatest(0, extract(epoch from greatest(own.tat, moment) - moment));
  bot_held := coalesce(extract(epoch from own.held_until - moment), 0);
  select coalesce(jsonb_object_agg(c.id, jsonb_build_object('kind', c.kind, 'moved', c.migrated_to)), '{}')
    into chat_kinds from chats c where c.bot_id = the_bot and c.id = any(
      array(select (a ->> 'chat')::bigint from jsonb_array_elements(asks) a where a ->> 'chat' ~ '^-[0-9]{1,18}$'));
  select coalesce(jsonb_object_agg(b.key, extract(epoch from greatest(b.tat, moment - interval '1 hour') - moment)), '{}'),
         coalesce(jsonb_object_agg(b.key, extract(epoch from b.held_until - moment))
                  filter (where b.held_until > moment), '{}')
    into chat_aheads, chat_helds from budgets b
    where b.key = any(select 'chat:' || the_bot || ':' || (a ->> 'chat') || s.suffix
                      from jsonb_array_elements(asks) a cross join (values (''), (':edits')) s(suffix)
                      where a ->> 'chat' is not null)
       or b.key = bot_key || ':unpaid';
  free_ahead := greatest(0, coalesce((chat_aheads ->> (bot_key || ':unpaid'))::float, 0));

  for ask in select a from jsonb_array_elements(asks) with ordinality x(a, place) order by place loop
    chat_key := 'chat:' || the_bot || ':' || (ask ->> 'chat');
    held := greatest(bot_held, coalesce((chat_helds ->> chat_key)::float, 0));
    if stopped is not null then
      answer := jsonb_build_object('stopped', stopped);
    elsif chat_kinds -> (ask ->> 'chat') ->> 'moved' is not null then
      answer := jsonb_build_object('moved', (chat_kinds -> (ask ->> 'chat') ->> 'moved')::bigint);
    elsif held > 0 then
      answer := jsonb_build_object('held', held);
    elsif ask ->> 'counts' = 'nothing' then
      answer := jsonb_build_object('wait', 0);
    else
      -- The chat's rate: none for an edit in a private chat, and none without a chat.
      rate := case when chat_key is null then null
                   when left(ask ->> 'chat', 1) = '-' and coalesce(chat_kinds -> (ask ->> 'chat') ->> 'kind', 'group')
                        in ('group', 'supergroup') then rates -> 'group'
                   when ask ->> 'counts' = 'edit' then null
                   else rates -> 'chat' end;
      size := coalesce((ask ->> 'size')::int, 1);
      rate_key := chat_key || case when ask ->> 'counts' = 'edit' then ':edits' else '' end;
      ahead := coalesce((chat_aheads ->> rate_key)::float, 0);
      chat_wait := case when rate is null then 0
                        else ahead - greatest(0, (rate ->> 'burst')::int - size) * (rate ->> 'step')::float end;
      wait := case when is_paid and (ask ->> 'unpaid')::boolean then free_ahead else bot_ahead end;
      if chat_wait > wait then
        -- A slot of the bot kept for this chat's sake would make all others wait.
        answer := jsonb_build_object('again', chat_wait, 'why', 'chat');
      elsif wait > (ask ->> 'tolerance')::float then
        answer := jsonb_build_object('again', wait - (ask ->> 'tolerance')::float, 'why', 'bot');
      else
        answer := jsonb_build_object('wait', wait, 'slot', extract(epoch from moment) + wait);
        if is_paid and (ask ->> 'unpaid')::boolean then
          free_ahead := wait + size * (rates ->> 'unpaid')::float;
          chat_aheads := chat_aheads || jsonb_build_object(bot_key || ':unpaid', free_ahead);
          changed := changed || (bot_key || ':unpaid');
        else
          bot_ahead := wait + size * (rates ->> case when is_paid then 'paid' else 'unpaid' end)::float;
        end if;
        if rate is not null then
          chat_aheads := chat_aheads || jsonb_build_object(
            rate_key, greatest(ahead, wait) + size * (rate ->> 'step')::float);
          changed := changed || rate_key;
        end if;
      end if;
    end if;
    answers := answers || jsonb_build_array(answer);
  end loop;

  if bot_ahead > 0 then
    update budgets b set tat = moment + bot_ahead * interval '1 second' where b.key = bot_key;
  end if;
  insert into budgets as b (key, tat)
    select distinct k, moment + (chat_aheads ->> k)::float * interval '1 second' from unnest(changed) k
    on conflict (key) do update set tat = excluded.tat;
  return answers;
end
$$
"""

# Its chat waits; so does the whole bot, unless the chat is a group or was over its own rate, or when a second chat is
# told to wait in that time. Returns how long the whole bot waits; 0: only the chat. Everybody sees it as soon as it
# returns; who called it then waits until it is on disk (budget.py).
HOLD_BUDGET = """
create function hold_budget(the_bot bigint, the_chat text, seconds float, own_step float) returns float
language plpgsql as $$
declare
  bot_key text := 'bot:' || the_bot;
  chat_key text := 'chat:' || the_bot || ':' || the_chat;
  own budgets;
  moment timestamptz;
  is_group boolean;
  over_its_rate boolean;
  second_chat boolean;
begin
  perform set_config('synchronous_commit', 'off', true);
  own := lock_budget(bot_key);
  moment := clock_timestamp();
  if the_chat is not null then
    insert into budgets as b (key, held_until) values (chat_key, moment + seconds * interval '1 second')
      on conflict (key) do update set held_until = greatest(b.held_until, excluded.held_until);
    is_group := the_chat ~ '^-[0-9]{1,18}$' and coalesce((select c.kind in ('group', 'supergroup') from chats c
                where c.bot_id = the_bot and c.id = the_chat::bigint), true);
    -- Its burst was used up; a slot or two may have been taken in vain.
    over_its_rate := exists (
      select from budgets b where b.key = chat_key and b.tat > moment + 2 * own_step * interval '1 second');
    second_chat := exists (
      select from budgets b where b.key > 'chat:' || the_bot || ':' and b.key < 'chat:' || the_bot || ';'
        and b.key <> chat_key and b.held_until > moment);
    if (is_group or over_its_rate) and not second_chat then
      return 0;
    end if;
  end if;
  update budgets b set held_until = greatest(b.held_until, moment + seconds * interval '1 second')
    where b.key = bot_key;
  return seconds;
end
$$
"""


def upgrade() -> None:
    for function in (LOCK_BUDGET, TAKE_SLOTS, HOLD_BUDGET):
        # Past SQLAlchemy's text(), which would read ':unpaid' as a parameter.
        op.get_bind().exec_driver_sql(function)


def downgrade() -> None:
    op.execute("drop function hold_budget(bigint, text, float, float)")
    op.execute("drop function take_slots(bigint, boolean, jsonb, jsonb)")
    op.execute("drop function lock_budget(text)")
