"""The ledger of outside effects: the intent is committed before the call, under the claim's token, its result after."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from chronos.engine.tasks import REPEATABLE, Claimed
from chronos.errors import Ambiguous, ClaimLost, Expired

# One statement: a worker that freezes between two would hold the task's lock, and nobody could take the task from it.
_INTEND = text("""
with owned as (
  select id, expires_at is not null and expires_at <= clock_timestamp() as expired from tasks
  where id = :id and token = :token for share
), made as (
  insert into sends as s (task_id, key, chat, state, token)
  select id, :key, cast(:chat as bigint), 'intent', :token from owned where not expired
  on conflict (task_id, key) do update set state = 'intent', token = :token, updated_at = clock_timestamp(),
    repeats = s.repeats + (s.state = 'intent' and s.token is distinct from :token)::int
  where s.state = 'not_sent' or s.state = 'intent' and (s.token = :token or s.repeats = 0 and :repeatable)
  returning 1
)
select owned.expired, exists (select from made) as made, s.state, s.result
from owned left join sends s on s.task_id = owned.id and s.key = :key
""")
_STORE = text("""
update sends set state = :state, result = cast(:result as jsonb), message_id = :message_id,
  updated_at = clock_timestamp() where task_id = :id and key = :key and state = 'intent'
""")


@dataclass(frozen=True)
class Stored:
    """An effect that was made by an earlier run of the task, or may have been: then nobody has decided yet."""

    result: Any
    doubtful: bool = False


def intend(connection: Connection, run: Claimed, key: str, chat: int | None) -> Stored | None:
    """Commit the intent; Stored when the effect has been made already.

    Repeating it within the same run, after a lost answer, is safe: the call had not been made.
    """
    facts = {"id": run.id, "token": run.token, "key": key, "chat": chat, "repeatable": run.queue in REPEATABLE}
    found = connection.execute(_INTEND, facts).one_or_none()
    if found is None:
        raise ClaimLost(f"task {run.id} is no longer this run's")
    if found.made:
        return None
    if found.state == "sent":
        return Stored(found.result)
    if found.state == "unknown":
        # Another effect of the task is being made again: this one is left as it is, the run goes on behind it.
        return Stored(found.result, doubtful=True)
    if found.expired:
        raise Expired("it expired before its effect was made")
    raise Ambiguous(f"the effect {key!r} may have been made by an earlier run")


def store(connection: Connection, run: Claimed, key: str, state: str, result: Any, message_id: int | None) -> None:
    connection.execute(
        _STORE,
        {
            "id": run.id,
            "key": key,
            "state": state,
            "message_id": message_id,
            "result": None if result is None else json.dumps(result, default=str),
        },
    )


def unknown(connection: Connection, task_id: uuid.UUID) -> list[tuple[str, int | None]]:
    """(key, chat) of the effects of a task that may have been made: what a person is to decide on."""
    rows = connection.execute(
        text("select key, chat from sends where task_id = :id and state = 'unknown' order by created_at, key"),
        {"id": task_id},
    )
    return [(row.key, row.chat) for row in rows]
