"""Updates are stored, then confirmed, then handled: in order per chat, and a restart goes on where the last run ended.

1. One INSERT stores a batch; what Telegram gives again changes nothing.
2. `claim` gives the oldest waiting update of each chat that is not being handled, and counts the try with it: an
   update that kills the process thrice is put aside too.
3. `done` or `failed` ends the try; the third failure puts it aside.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from chronos.db import Database

MOST_TRIES = 3
#: A text that answers a question is looked for behind so many updates, at most.
LOOK_BACK = 1000

_STORE = text("""
insert into updates (bot_id, update_id, chat, payload)
select :bot, u.update_id, u.chat, u.payload
from jsonb_to_recordset(cast(:updates as jsonb)) as u(update_id bigint, chat bigint, payload jsonb)
on conflict do nothing
""")
_CLAIM = text("""
with heads as (
  select update_id from (
    select distinct on (chat) chat, update_id from updates
    where bot_id = :bot and handled_at is null and put_aside_at is null and chat <> all(cast(:busy as bigint[]))
    order by chat, update_id) each order by update_id limit :most
)
update updates u set tries = least(u.tries, :tries) + 1,
  put_aside_at = case when u.tries >= :tries then clock_timestamp() end,
  error = case when u.tries >= :tries then coalesce(u.error, 'the bot ended while it was handled') else u.error end
from heads where u.bot_id = :bot and u.update_id = heads.update_id
returning u.update_id, u.chat, u.payload, u.tries, u.put_aside_at is not null as aside
""")
_DONE = text("""
update updates set handled_at = clock_timestamp()
where bot_id = :bot and update_id = :id and handled_at is null and put_aside_at is null
""")
_FAILED = text("""
update updates set error = :error, put_aside_at = case when tries >= :tries then clock_timestamp() end
where bot_id = :bot and update_id = :id and handled_at is null and put_aside_at is null
returning put_aside_at is not null
""")
_GIVE_BACK = text("""
update updates set tries = greatest(tries - 1, 0)
where bot_id = :bot and update_id = :id and handled_at is null and put_aside_at is null
""")
_QUESTION = text("""
select payload #>> '{callback_query,data}' from updates
where bot_id = :bot and chat = :chat and update_id < :id and update_id >= :id - :back
  and (payload ? 'callback_query' or payload #>> '{message,text}' like '/%')
  and received_at > clock_timestamp() - interval '1 hour'
order by update_id desc limit 1
""")
_ASIDE = "bot_id = :bot and put_aside_at is not null"
_COUNT_ASIDE = text(f"select count(*) from updates where {_ASIDE}")
_AGAIN = text(f"update updates set put_aside_at = null, tries = 0, error = null, told_at = null where {_ASIDE}")
_FORGET = text(f"delete from updates where {_ASIDE}")


@dataclass(frozen=True)
class Waiting:
    update_id: int
    chat: int
    payload: dict[str, Any]
    tries: int
    aside: bool  #: put aside just now: it ended the process in each of its tries


class Inbox:
    def __init__(self, database: Database, bot_id: int) -> None:
        self._database, self.bot_id = database, bot_id

    def store(self, updates: Iterable[dict[str, Any]]) -> None:
        rows = [
            {"update_id": update["update_id"], "chat": order_key(update), "payload": _storable(update)}
            for update in updates
        ]
        with self._database.statement() as connection:
            connection.execute(_STORE, {"bot": self.bot_id, "updates": json.dumps(rows)})

    def claim(self, busy: Iterable[int], most: int) -> list[Waiting]:
        with self._database.statement() as connection:
            facts = {"bot": self.bot_id, "busy": list(busy), "most": most, "tries": MOST_TRIES}
            found = [Waiting(**row._mapping) for row in connection.execute(_CLAIM, facts)]
        return sorted(found, key=lambda waiting: waiting.update_id)

    def done(self, update_id: int) -> None:
        self._write(_DONE, id=update_id)

    def failed(self, update_id: int, error: str) -> bool:
        """True: that was the last try, it is put aside."""
        return bool(self._write(_FAILED, id=update_id, error=error, tries=MOST_TRIES))

    def give_back(self, update_id: int) -> None:
        """It was not its fault: the try does not count."""
        self._write(_GIVE_BACK, id=update_id)

    def question(self, chat: int, update_id: int) -> str | None:
        """The button that was pressed last in this chat, if nothing but plain text came since: what a text answers."""
        found = self._write(_QUESTION, id=update_id, chat=chat, back=LOOK_BACK)
        return None if found is None else str(found)

    # -- what was put aside

    def aside(self) -> int:
        return int(self._write(_COUNT_ASIDE))

    def try_again(self) -> None:
        self._write(_AGAIN)

    def forget_aside(self) -> None:
        self._write(_FORGET)

    def _write(self, statement: Any, **facts: Any) -> Any:
        with self._database.statement() as connection:
            result = connection.execute(statement, {"bot": self.bot_id, **facts})
            return result.scalar() if result.returns_rows else None


def order_key(update: dict[str, Any]) -> int:
    """The chat of an update; its user where there is none."""
    for content in update.values():
        if isinstance(content, dict):
            for place in (content, content.get("message")):
                if isinstance(place, dict) and isinstance(place.get("chat"), dict):
                    return int(place["chat"]["id"])
            if isinstance(content.get("from"), dict):
                return int(content["from"]["id"])
    return 0


def _storable(value: Any) -> Any:
    """The same without what PostgreSQL cannot hold: NUL, half a surrogate pair."""
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value
