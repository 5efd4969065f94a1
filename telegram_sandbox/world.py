"""Everything there is: bots, users, chats, messages, updates, files. Every change goes through put() and commit()."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from telegram_sandbox.errors import Json, not_found, unauthorized
from telegram_sandbox.journal import Change, Journal

TOKEN = re.compile(r"([1-9]\d{0,15}):[A-Za-z0-9_-]{35}")

#: Messages kept per chat, or up to twice as many until the next start.
KEPT = 5_000

#: Seconds since the epoch; a bot's first update_id counts from here, so that a fresh folder does not repeat ids.
UPDATE_EPOCH = 1_700_000_000


def talk(bot: int, user: int) -> str:
    """The place of a private chat. A group's or channel's place is its id as text."""
    return f"{bot}:{user}"


class World:
    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.bots: dict[int, Json] = {}
        self.users: dict[int, Json] = {}
        self.chats: dict[int, Json] = {}
        #: Private chats, by place: {"started": bool, "blocked": bool}.
        self.talks: dict[str, Json] = {}
        #: By place, by message_id: {"message": as the Bot API has it, "bot": whose, "keyboard", "seq"}.
        self.messages: dict[str, dict[int, Json]] = {}
        #: By bot, by update_id.
        self.updates: dict[int, dict[int, Json]] = {}
        self.files: dict[str, Json] = {}
        self.queries: dict[str, Json] = {}
        #: Counters, by name.
        self.last: dict[str, int] = {}
        #: The number of the last request whose changes are in the journal.
        self.number = 0
        self.on_update: Callable[[int], None] = lambda bot: None
        self._pending: list[Change] = []
        #: The changes of the last request before the start, for the log (request_log.py).
        self.last_changes: list[Change] = []
        for number, changes in journal.read():
            if number > self.number:
                self.last_changes = []
            self.number = max(self.number, number)
            self.last_changes += changes
            for table, *path, value in changes:
                self._apply(table, path, value)
        journal.start(self.number, self._everything())

    def put(self, value: Any, table: str, *path: int | str) -> None:
        self._pending.append([table, *path, value])
        self._apply(table, path, value)

    def commit(self, number: int | None = None) -> None:
        if number is not None:
            self.number = number
        if self._pending:
            pending, self._pending = self._pending, []
            self.journal.write(self.number, pending)

    def next(self, counter: str, first: int = 1) -> int:
        """The caller stores something under this number in the same commit, or puts the counter itself."""
        return self.last.get(counter, first - 1) + 1

    def counter_of(self, place: str) -> str:
        """In private chats a bot counts its messages over all of them; a group counts for itself."""
        return f"messages {place.partition(':')[0]}"

    def _apply(self, table: str, path: Any, value: Any) -> None:
        entries: dict[Any, Any] = getattr(self, table)
        for key in path[:-1]:
            entries = entries.setdefault(key, {})
        if value is None:
            entries.pop(path[-1], None)
        else:
            entries[path[-1]] = value
        if table == "messages":
            counter = self.counter_of(path[0])
            self.last[counter] = max(self.last.get(counter, 0), path[1])
        elif table == "updates":
            counter = f"updates {path[0]}"
            self.last[counter] = max(self.last.get(counter, 0), path[1])

    def _everything(self) -> Iterator[Change]:
        for table in ("users", "chats", "bots", "talks", "files", "queries", "last"):
            for key, value in getattr(self, table).items():
                yield [table, key, value]
        for table, kept in (("messages", KEPT), ("updates", None)):
            for outer, entries in getattr(self, table).items():
                for key in sorted(entries)[-kept if kept else None :]:
                    yield [table, outer, key, entries[key]]

    def forget_old(self, place: str) -> None:
        """A broadcast of days must not fill the memory; the journal forgets them at the next start."""
        kept = self.messages[place]
        if len(kept) > 2 * KEPT:
            for id_ in sorted(kept)[:KEPT]:
                del kept[id_]

    # -- bots

    def bot_of(self, token: str) -> Json:
        match = TOKEN.fullmatch(token)
        if match is None:
            raise not_found() if ":" not in token else unauthorized()
        bot = self.bots.get(int(match[1])) or self.add_bot(int(match[1]))
        if bot.get("revoked"):
            raise unauthorized()
        return bot

    def add_bot(self, id_: int) -> Json:
        """A bot that nobody has seen is an admin of every seeded channel and a member of every seeded group."""
        self.put(
            {"id": id_, "name": f"Bot {id_}", "username": f"sandbox_{id_}_bot", "since": int(time.time())}, "bots", id_
        )
        for chat in list(self.chats.values()):
            if chat.get("seeded"):
                status = "administrator" if chat["type"] == "channel" else "member"
                self.put({**chat, "members": {**chat["members"], str(id_): {"status": status}}}, "chats", chat["id"])
        return self.bots[id_]

    def started(self, bot: int, user: int) -> bool:
        known = self.talks.get(talk(bot, user))
        return known["started"] if known else bool(self.users[user].get("subscriber"))

    def blocked(self, bot: int, user: int) -> bool:
        return bool(self.talks.get(talk(bot, user), {}).get("blocked"))

    def status(self, chat: Json, id_: int) -> str:
        return str(chat["members"].get(str(id_), {}).get("status", "left"))

    # -- updates

    def enqueue(self, bot: int, kind: str, payload: Json) -> int | None:
        """None: the bot did not ask for updates of this kind."""
        wanted = self.bots[bot].get("allowed_updates")
        if kind not in wanted if wanted else kind in ("chat_member", "message_reaction", "message_reaction_count"):
            return None
        id_ = self.next(f"updates {bot}", int(time.time()) - UPDATE_EPOCH)
        self.put({"update_id": id_, kind: payload}, "updates", bot, id_)
        self.on_update(bot)
        return id_

    def confirm(self, bot: int, offset: int) -> None:
        for id_ in [id_ for id_ in self.updates.get(bot, {}) if id_ < offset]:
            self.put(None, "updates", bot, id_)
