"""The schema's version: bring a database up to it, or say in one line that it is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from chronos.db import Database
from chronos.errors import NotMigrated

if TYPE_CHECKING:
    # Alembic is imported where it is used: it costs every command a sixth of a second.
    from alembic.config import Config

_FOLDER = Path(__file__).resolve().parent.parent.parent / "migrations"


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    return config


def expected() -> str:
    from alembic.script import ScriptDirectory

    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None, "there is no migration"  # noqa: S101
    return head


def current(database: Database) -> str | None:
    from alembic.runtime.migration import MigrationContext

    with database.engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(database: Database, to: str = "head") -> None:
    from alembic import command

    config = _config()
    with database.transaction() as connection:
        # Two processes that start together must not migrate together.
        connection.exec_driver_sql("select pg_advisory_xact_lock(7240117)")
        config.attributes["connection"] = connection
        command.upgrade(config, to)


def downgrade(database: Database, to: str = "base") -> None:
    from alembic import command

    config = _config()
    with database.transaction() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, to)


def require(database: Database) -> None:
    """Raise NotMigrated, in one line, unless the database has the schema of this code."""
    found = current(database)
    if found != expected():
        state = "is empty" if found is None else f"is at {found}, this code needs {expected()}"
        raise NotMigrated(f"the database {state}: run `chronos db upgrade`")
