"""Alembic's entry: runs on the connection that `chronos db upgrade` hands over."""

from alembic import context

from chronos.models import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, compare_server_default=False)
with context.begin_transaction():
    context.run_migrations()
