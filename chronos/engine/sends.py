"""The ledger of outside effects: the intent is committed before the call, under the claim's token, its result after."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from chronos.engine.tasks import REPEATABLE, Claimed
from chronos.errors import Ambiguous, ClaimLost, Expired

_OWNED = text("""
select expires_at is not null and expires_at <= clock_timestamp() as expired from tasks
where id = :id and token = :token for share
""")
_INTEND = text("""
insert into sends as s (task_id, key, chat, state) values (:id, :key, :chat, 'intent')
on conflict (task_id, key) do update set state = 'intent', updated_at = clock_timestamp(),
  repeats = s.repeats + (s.state = 'intent')::int
  where s.state = 'not_sent' or (s.state = 'intent' and s.repeats = 0 and :repeatable)
returning s.state
""")
_STORED = text("select state, result from sends where task_id = :id and key = :key")
_STORE = text("""
update sends set state = :state, result = cast(:result as jsonb), message_id = :message_id,
  updated_at = clock_timestamp() where task_id = :id and key = :key and state = 'intent'
""")


@dataclass(frozen=True)
class Stored:
    """An effect that was made by an earlier run of the task."""

    result: Any


def intend(connection: Connection, run: Claimed, key: str, chat: int | None) -> Stored | None:
    """Commit the intent; Stored when the effect has been made already. Within the caller's transaction."""
    owned = connection.execute(_OWNED, {"id": run.id, "token": run.token}).one_or_none()
    if owned is None:
        raise ClaimLost(f"task {run.id} is no longer this run's")
    if owned.expired:
        raise Expired("it expired before its effect was made")
    fresh = connection.execute(
        _INTEND, {"id": run.id, "key": key, "chat": chat, "repeatable": run.queue in REPEATABLE}
    ).scalar()
    if fresh is not None:
        return None
    found = connection.execute(_STORED, {"id": run.id, "key": key}).one()
    if found.state == "sent":
        return Stored(found.result)
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
