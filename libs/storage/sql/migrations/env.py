"""Run by Alembic: the connection comes from `libs.storage.sql.migrating`."""

from alembic import context

from libs.storage.sql.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite changes tables by making them anew
)
with context.begin_transaction():
    context.run_migrations()
