"""What a call taught us about a bot and its chats, kept: who cannot be reached, which chat moved, which bot stopped."""

from __future__ import annotations

from sqlalchemy import Connection, text

_BLOCKED = text("""
update subscribers set blocked_at = clock_timestamp(), blocked_why = :why
where bot_id = :bot and user_id = :chat and blocked_at is null
""")
_REACHABLE = text("""
update subscribers set blocked_at = null, blocked_why = null where bot_id = :bot and user_id = :chat
""")
_SEEN = text("""
insert into chats as c (bot_id, id, kind, title, username) values (:bot, :chat, :kind, :title, :username)
on conflict (bot_id, id) do update set title = excluded.title, username = excluded.username
""")
_MOVED = (
    text("""
insert into chats as c (bot_id, id, kind, migrated_to) values (:bot, :old, 'group', :new)
on conflict (bot_id, id) do update set kind = 'group', migrated_to = excluded.migrated_to
"""),
    text("""
insert into chats (bot_id, id, kind, title)
select :bot, :new, 'supergroup', c.title from chats c where c.bot_id = :bot and c.id = :old
on conflict (bot_id, id) do nothing
"""),
    text("update tasks set chat = :new where bot_id = :bot and chat = :old and status in ('pending', 'in_progress')"),
)
_STOPPED = text("""
insert into bots as b (id, stopped_at, stopped_why) values (:bot, clock_timestamp(), :why)
on conflict (id) do update set stopped_at = coalesce(b.stopped_at, excluded.stopped_at),
  stopped_why = excluded.stopped_why
""")
_WORKS = text("""
insert into bots as b (id, username, name, paid) values (:bot, :username, :name, :paid)
on conflict (id) do update set username = excluded.username, name = excluded.name, paid = excluded.paid,
  stopped_at = null, stopped_why = null
""")


def mark_blocked(connection: Connection, bot: int, chat: int, why: str) -> None:
    """A private chat has its user's id; of a group there is no subscriber to mark."""
    connection.execute(_BLOCKED, {"bot": bot, "chat": chat, "why": why})


def mark_reachable(connection: Connection, bot: int, chat: int) -> None:
    """They have unblocked the bot."""
    connection.execute(_REACHABLE, {"bot": bot, "chat": chat})


def remember(connection: Connection, bot: int, chat: int, kind: str, title: str | None, username: str | None) -> None:
    """A chat in which the bot is or was."""
    facts = {"bot": bot, "chat": chat, "kind": kind, "title": title, "username": username}
    connection.execute(_SEEN, facts)


def move(connection: Connection, bot: int, old: int, new: int) -> None:
    """The group became a supergroup: whatever is still to be sent goes there."""
    for statement in _MOVED:
        connection.execute(statement, {"bot": bot, "old": old, "new": new})


def stop_bot(connection: Connection, bot: int, why: str) -> None:
    """No process makes a call for it until its token is known to work (`bot_works`)."""
    connection.execute(_STOPPED, {"bot": bot, "why": why})


def bot_works(connection: Connection, bot: int, username: str | None, name: str, paid: bool) -> None:
    connection.execute(_WORKS, {"bot": bot, "username": username, "name": name, "paid": paid})
