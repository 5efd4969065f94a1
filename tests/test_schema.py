"""The tables of the migrations are the tables of the models."""

from __future__ import annotations

import re

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from chronos.engine import schema
from chronos.errors import NotMigrated
from chronos.models import MOVES, Base, ChatKind, Role, TaskStatus
from chronos.runtime import Runtime


def test_migrations_go_up_down_and_up_and_equal_the_models(runtime: Runtime) -> None:
    schema.downgrade(runtime.database)
    with pytest.raises(NotMigrated, match="run `chronos db upgrade`"):
        schema.require(runtime.database)
    schema.upgrade(runtime.database)
    schema.require(runtime.database)
    with runtime.database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_the_databases_statuses_are_the_codes(runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        definition = connection.execute(
            text("select pg_get_constraintdef(oid) from pg_constraint where conname = 'tasks_status_check'")
        ).scalar_one()
    assert {status for status in TaskStatus if f"'{status}'" in definition} == set(TaskStatus)
    assert {move for pair in MOVES for move in pair} == set(TaskStatus)


@pytest.mark.parametrize(
    "columns",
    [
        "status = 'in_progress'",
        "status = 'completed'",
        "status = 'failed', finished_at = now()",
        "priority = 0",
    ],
)
def test_a_status_without_what_it_requires_is_refused(runtime: Runtime, columns: str) -> None:
    with runtime.database.statement() as connection:
        connection.execute(
            text("insert into tasks (id, queue, task_name, max_attempts) values (gen_random_uuid(), 'system', 'x', 3)")
        )
        with pytest.raises(IntegrityError):
            connection.execute(text(f"update tasks set {columns}"))


@pytest.mark.parametrize(
    "statement",
    [
        "insert into bots (id, stopped_at) values (1, now())",
        "insert into bots (id, poller) values (1, 'host, 7')",
        "insert into users (id, role) values (1, 'owner')",
        "insert into users (id, granted_by) values (1, 2)",
        "insert into users (id, language) values (1, 'fr')",
        "insert into chats (bot_id, id, kind) values (1, 1, 'secret')",
        "insert into chats (bot_id, id, kind, migrated_to) values (1, -5, 'supergroup', -1005)",
        "insert into subscribers (bot_id, user_id, blocked_at) values (1, 1, now())",
        "insert into updates (bot_id, update_id, chat, payload, put_aside_at) values (1, 1, 1, '{}', now())",
        "insert into updates (bot_id, update_id, chat, payload, tries) values (1, 1, 1, '{}', -1)",
        "insert into cards (task_id, bot_id, chat, locale, shown) values (gen_random_uuid(), 1, 1, 'ru', 'abc')",
        "insert into invitations (code_hash, role, used_at) values ('abc', 'admin', now())",
        "insert into budgets (key) values ('user:1')",
    ],
)
def test_a_row_of_the_chat_without_what_its_state_requires_is_refused(runtime: Runtime, statement: str) -> None:
    with runtime.database.statement() as connection, pytest.raises(IntegrityError, match="_check"):
        connection.execute(text(statement))


def test_the_databases_roles_and_kinds_are_the_codes(runtime: Runtime) -> None:
    with runtime.database.statement() as connection:
        for values, constraint in ((Role, "users_role"), (Role, "invitations_role"), (ChatKind, "chats_kind")):
            definition = connection.execute(
                text("select pg_get_constraintdef(oid) from pg_constraint where conname = :name"),
                {"name": f"{constraint}_check"},
            ).scalar_one()
            assert set(re.findall(r"'(\w+)'", definition)) == set(values)
