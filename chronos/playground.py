"""What a first start on the Telegram sandbox finds: people with roles, subscribers, and an activity to report on."""

from __future__ import annotations

from sqlalchemy import Connection, text

from chronos.reports.sample import put_sample
from chronos.servers import SANDBOX_BOT

_PEOPLE = text("""
insert into users (id, first_name, username, language_code, role)
values (:id, :first_name, :username, :language_code, :role) on conflict (id) do nothing
""")
_SUBSCRIBERS = text("""
insert into subscribers (bot_id, user_id) select :bot, id from unnest(cast(:ids as bigint[])) id on conflict do nothing
""")


def furnish(connection: Connection) -> None:
    """Only an empty database: what somebody changed since stays as it is."""
    if connection.execute(text("select exists (select from users)")).scalar_one():
        return
    from telegram_sandbox.seed import FIRST_SUBSCRIBER, PEOPLE, SUBSCRIBERS

    for key, (id_, first_name, _, username, language) in PEOPLE.items():
        role = key if key in ("admin", "editor") else "user"
        facts = {"id": id_, "first_name": first_name, "username": username, "language_code": language, "role": role}
        connection.execute(_PEOPLE, facts)
    ids = list(range(FIRST_SUBSCRIBER, FIRST_SUBSCRIBER + SUBSCRIBERS))
    connection.execute(_SUBSCRIBERS, {"bot": SANDBOX_BOT, "ids": ids})
    put_sample(connection)
