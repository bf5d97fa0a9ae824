"""Called by Alembic, on the connection and in the transaction of `upgrade`."""

from __future__ import annotations

from alembic import context

from dobandit.experiment.storage.schema import VERSION_TABLE, whole_metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=whole_metadata(),
    version_table=VERSION_TABLE,
    render_as_batch=True,  # SQLite cannot alter much in place
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
