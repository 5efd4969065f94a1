"""One process polls a bot: it says so in the bot's row and beats there. A second one learns who it is, and stops."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import text

from chronos.db import Database
from chronos.engine.beat import process_start, this_host
from chronos.errors import ChronosError

_WHO = text("select poller from bots where id = :bot")
_TAKE = text("""
insert into bots as b (id, poller, poller_beat_at) values (:bot, :me, clock_timestamp())
on conflict (id) do update set poller = :me, poller_beat_at = clock_timestamp()
where b.poller is null or b.poller = :me or b.poller = :gone
   or b.poller_beat_at < clock_timestamp() - :lease * interval '1 second'
returning 1
""")
_BEAT = text("update bots set poller_beat_at = clock_timestamp() where id = :bot and poller = :me")
_LEAVE = text("update bots set poller = null, poller_beat_at = null where id = :bot and poller = :me")


class PolledByAnother(ChronosError):
    """Another living process polls with this token."""


class Poller:
    def __init__(self, database: Database, bot_id: int, lease: float) -> None:
        self._database, self._bot, self.lease = database, bot_id, lease
        self._host = this_host()
        self.me = json.dumps(
            {
                "host": self._host,
                "name": socket.gethostname(),
                "pid": os.getpid(),
                "start": process_start(os.getpid()),
                "since": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )

    def take(self) -> None:
        """Be the one who polls, or raise PolledByAnother. What died on this host is known to be dead at once."""
        with self._database.statement() as connection:
            who = connection.execute(_WHO, {"bot": self._bot}).scalar()
            facts = {"bot": self._bot, "me": self.me, "gone": who if self._is_gone(who) else "", "lease": self.lease}
            if connection.execute(_TAKE, facts).scalar() is None:
                who = connection.execute(_WHO, {"bot": self._bot}).scalar()
                raise PolledByAnother(self.words(who))

    def beat(self) -> None:
        with self._database.statement() as connection:
            if connection.execute(_BEAT, {"bot": self._bot, "me": self.me}).rowcount:
                return
        self.take()

    def leave(self) -> None:
        with self._database.statement() as connection:
            connection.execute(_LEAVE, {"bot": self._bot, "me": self.me})

    def who(self) -> str:
        with self._database.statement() as connection:
            return self.words(connection.execute(_WHO, {"bot": self._bot}).scalar())

    def words(self, who: str | None) -> str:
        facts = _facts(who)
        if who is None or who == self.me or not facts:
            return f"another process polls with the token of bot {self._bot}, on another database: stop one of the two"
        return (
            f"bot {self._bot} is polled already by process {facts.get('pid')} on {facts.get('name')}"
            f" since {facts.get('since')}: stop that one first"
        )

    def _is_gone(self, who: str | None) -> bool:
        facts = _facts(who)
        return facts.get("host") == self._host and process_start(int(facts["pid"])) != facts.get("start")


def _facts(who: str | None) -> dict[str, Any]:
    try:
        facts = json.loads(who or "")
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}
