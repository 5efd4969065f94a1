"""The tables of the migrations are the tables of the models."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from chronos.engine import schema
from chronos.errors import NotMigrated
from chronos.models import MOVES, Base, TaskStatus
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
