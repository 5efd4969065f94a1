"""People: who may do what, in which language and time zone. The verbs that the bot and the command line share."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, text

from chronos.errors import BadInput
from chronos.language import language_for
from chronos.models.period import checked_zone
from chronos.models.user import LANGUAGES, Role
from chronos.runtime import Runtime

#: A Bot API id fits into 52 bits.
LARGEST_ID = 2**52
#: Bytes of an invitation's code; a deep link carries 64 characters.
CODE_BYTES = 24
#: Of one list.
MOST = 200

_RANK = {role: place for place, role in enumerate(Role, start=1)}


@dataclass(frozen=True)
class Person:
    id: int
    first_name: str | None = None
    username: str | None = None
    language_code: str | None = None
    language: str | None = None
    time_zone: str | None = None
    role: Role | None = None  #: None: a stranger

    @property
    def speaks(self) -> str:
        """What they chose, else what their Telegram speaks."""
        return language_for(self.language, self.language_code)

    def may(self, role: Role) -> bool:
        return self.role is not None and _RANK[self.role] >= _RANK[role]

    @property
    def name(self) -> str:
        return self.first_name or (f"@{self.username}" if self.username else str(self.id))


_COLUMNS = "id, first_name, username, language_code, language, time_zone, role"

# A row is written only when something about the person has changed.
_MEET = text(f"""
with met as (
  insert into users as u (id, first_name, username, language_code) values (:id, :first_name, :username, :code)
  on conflict (id) do update set first_name = excluded.first_name, username = excluded.username,
    language_code = excluded.language_code, updated_at = clock_timestamp()
  where (u.first_name, u.username, u.language_code) is distinct from
        (excluded.first_name, excluded.username, excluded.language_code)
  returning {_COLUMNS}
)
select {_COLUMNS} from met union all select {_COLUMNS} from users where id = :id and not exists (select from met)
""")


def meet(runtime: Runtime, id_: int, first_name: str, username: str | None, language_code: str | None) -> Person:
    """Somebody writes: what Telegram says of them is kept, what we know of them comes back."""
    facts = {"id": id_, "first_name": first_name, "username": username, "code": language_code}
    with runtime.database.statement() as connection:
        # Twice: two processes that meet the same person at once see nothing of one another's row.
        row = connection.execute(_MEET, facts).one_or_none() or connection.execute(_MEET, facts).one()
    return _person(runtime, row)


def find(runtime: Runtime, id_: int) -> Person | None:
    with runtime.database.statement() as connection:
        return _find(connection, runtime, id_)


def with_roles(runtime: Runtime, role: Role | None = None) -> list[Person]:
    """Who has a role, admins first; those that a setting makes admins are among them."""
    with runtime.database.statement() as connection:
        rows = connection.execute(
            text(
                f"select {_COLUMNS} from users where (role is not null or id = any(cast(:always as bigint[])))"
                " order by created_at, id limit :most"
            ),
            {"always": list(runtime.settings.admin_ids), "most": MOST},
        ).all()
    found = {row.id: _person(runtime, row) for row in rows}
    for id_ in sorted(runtime.settings.admin_ids):
        found.setdefault(id_, Person(id_, role=Role.ADMIN))
    chosen = [person for person in found.values() if role is None or person.role is role]
    return sorted(chosen, key=lambda person: -_RANK[person.role] if person.role else 0)


# ----------------------------------------------------------------------------------------------- roles


@dataclass(frozen=True)
class RoleChange:
    person: Person  #: with the new role
    before: Role | None


def role_of(word: str) -> Role:
    try:
        return Role(word.strip().lower())
    except ValueError:
        raise BadInput(f"{word!r} is no role: choose one of {', '.join(Role)}", "no_role", given=word) from None


def id_of(word: str) -> int:
    if not (word.isascii() and word.isdigit()) or not 0 < int(word) < LARGEST_ID:
        raise BadInput(f"{word!r} is no numeric Telegram id: /start shows it", "no_user_id", given=word)
    return int(word)


def grant(runtime: Runtime, id_: int, role: Role, by: int | None = None) -> RoleChange:
    """Also for somebody who has never written yet. `by`: None for the command line."""
    return _set_role(runtime, id_, role, by)


def revoke(runtime: Runtime, id_: int) -> RoleChange:
    """They are a stranger again."""
    return _set_role(runtime, id_, None, None)


def _set_role(runtime: Runtime, id_: int, role: Role | None, by: int | None) -> RoleChange:
    if id_ in runtime.settings.admin_ids and role is not Role.ADMIN:
        raise BadInput(f"{id_} is an admin by CHRONOS_ADMINS: change the setting", "admin_by_setting", id=str(id_))
    with runtime.database.transaction() as connection:
        # Two admins who revoke one another wait here for each other: one of them stays.
        admins = connection.execute(text("select id from users where role = 'admin' order by id for update"))
        others = {*admins.scalars(), *runtime.settings.admin_ids} - {id_}
        before = _find(connection, runtime, id_)
        if role is None and (before is None or before.role is None):
            raise BadInput(f"{id_} has no role", "has_no_role", id=str(id_))
        if before is not None and before.role is Role.ADMIN and role is not Role.ADMIN and not others:
            raise BadInput(f"{id_} is the last admin: make somebody else an admin first", "last_admin")
        row = connection.execute(
            text(
                "insert into users as u (id, role, granted_by) values (:id, :role, :by) on conflict (id) do update"
                " set role = excluded.role, granted_by = excluded.granted_by, updated_at = clock_timestamp()"
                f" returning {_COLUMNS}"
            ),
            {"id": id_, "role": role, "by": by},
        ).one()
    return RoleChange(_person(runtime, row), None if before is None else before.role)


# ----------------------------------------------------------------------------------------- invitations


def invite_admin(runtime: Runtime) -> str:
    """A code for https://t.me/<bot>?start=<code>: who opens it first is an admin. Only its hash is kept."""
    code = secrets.token_urlsafe(CODE_BYTES)
    with runtime.database.statement() as connection:
        connection.execute(
            text("insert into invitations (code_hash, role) values (:hash, 'admin')"), {"hash": _hash(code)}
        )
    return code


def accept(runtime: Runtime, code: str, id_: int) -> Role | None:
    """The role that the code gives, once and to one person. None: it is no code (any more)."""
    with runtime.database.transaction() as connection:
        given = connection.execute(
            text(
                "update invitations set used_at = clock_timestamp(), used_by = :id"
                " where code_hash = :hash and used_at is null returning role"
            ),
            {"hash": _hash(code), "id": id_},
        ).scalar()
        if given is None:
            return None
        connection.execute(
            text(
                "insert into users as u (id, role) values (:id, :role) on conflict (id) do update"
                " set role = excluded.role, granted_by = null, updated_at = clock_timestamp()"
            ),
            {"id": id_, "role": given},
        )
    return Role(given)


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


# -------------------------------------------------------------------------------------------- settings


def choose_language(runtime: Runtime, id_: int, language: str | None) -> None:
    """None: whatever their Telegram speaks."""
    if language is not None and language not in LANGUAGES:
        raise BadInput(f"Chronos speaks {' and '.join(LANGUAGES)}, not {language!r}", "no_language")
    _choose(runtime, id_, "language", language)


def choose_zone(runtime: Runtime, id_: int, zone: str) -> None:
    _choose(runtime, id_, "time_zone", checked_zone(zone))


def _choose(runtime: Runtime, id_: int, column: str, value: str | None) -> None:
    with runtime.database.statement() as connection:
        connection.execute(
            text(f"update users set {column} = :value, updated_at = clock_timestamp() where id = :id"),
            {"id": id_, "value": value},
        )


def subscribe(runtime: Runtime, bot_id: int, id_: int) -> None:
    """Who writes can be reached: a mark that they blocked the bot is taken back."""
    with runtime.database.statement() as connection:
        connection.execute(
            text(
                "insert into subscribers as s (bot_id, user_id) values (:bot, :id) on conflict (bot_id, user_id)"
                " do update set unsubscribed_at = null, blocked_at = null, blocked_why = null"
            ),
            {"bot": bot_id, "id": id_},
        )


def unsubscribe(runtime: Runtime, bot_id: int, id_: int) -> bool:
    """False: they were no subscriber."""
    with runtime.database.statement() as connection:
        done = connection.execute(
            text(
                "update subscribers set unsubscribed_at = clock_timestamp()"
                " where bot_id = :bot and user_id = :id and unsubscribed_at is null"
            ),
            {"bot": bot_id, "id": id_},
        )
        return bool(done.rowcount)


# ----------------------------------------------------------------------------------------------- reading


def _find(connection: Connection, runtime: Runtime, id_: int) -> Person | None:
    row = connection.execute(text(f"select {_COLUMNS} from users where id = :id"), {"id": id_}).one_or_none()
    return None if row is None else _person(runtime, row)


def _person(runtime: Runtime, row: Any) -> Person:
    facts = dict(row._mapping)
    person = Person(**{**facts, "role": None if facts["role"] is None else Role(facts["role"])})
    return replace(person, role=Role.ADMIN) if person.id in runtime.settings.admin_ids else person
