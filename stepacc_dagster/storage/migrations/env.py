"""Run the revisions; imported by Alembic, never by the package.

The connection, its transaction and its lock are those of `stepacc_dagster.storage.schema.upgrade`.
"""

from alembic import context

from stepacc_dagster.storage.columns import SCHEMA, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table_schema=SCHEMA,
    include_schemas=True,
)
context.run_migrations()
