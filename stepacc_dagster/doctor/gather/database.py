"""Facts about a database of stepacc."""

from dataclasses import replace

import sqlalchemy as sa

from stepacc_dagster.doctor.database import Database, Schema, Server
from stepacc_dagster.doctor.gather.connections import reading
from stepacc_dagster.errors import RedactionKeyError, SchemaError, SchemaNewerError
from stepacc_dagster.redaction.key import has_own_key, redaction_key
from stepacc_dagster.storage.columns import SCHEMA
from stepacc_dagster.storage.redaction_key import refuse_other_key
from stepacc_dagster.storage.schema import check_schema, current_revision, head_revision

_SERVER = sa.text("""
    SELECT current_setting('server_version'), current_user,
           pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',
           has_database_privilege(current_database(), 'CREATE'),
           has_database_privilege(current_database(), 'TEMPORARY')
""")
_OWNED = sa.text("""
    SELECT bool_and(pg_has_role(owner, 'USAGE')) FROM (
        SELECT nspowner FROM pg_namespace WHERE nspname = :schema
        UNION ALL
        SELECT relation.relowner FROM pg_class relation
        JOIN pg_namespace space ON space.oid = relation.relnamespace
        WHERE space.nspname = :schema AND relation.relkind IN ('r', 'v', 'S')
    ) owned (owner)
""")
_FORBIDDEN = sa.text("""
    SELECT privilege, relation.relname
    FROM pg_class relation
    JOIN pg_namespace space ON space.oid = relation.relnamespace
    CROSS JOIN LATERAL unnest(CASE
        WHEN relation.relname = ANY(:replaced) THEN ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']
        WHEN relation.relname = ANY(:changed) THEN ARRAY['SELECT', 'INSERT', 'UPDATE']
        WHEN relation.relname IN ('annotations', 'metric_configs', 'redaction_key') THEN ARRAY['SELECT', 'INSERT']
        ELSE ARRAY['SELECT']
    END) privilege
    WHERE space.nspname = :schema AND relation.relkind IN ('r', 'v')
      AND NOT has_table_privilege(relation.oid, privilege)
    ORDER BY privilege DESC, relation.relname
""")
_WRITTEN = {
    "replaced": ["spans", "sessions", "task_summaries"],
    "changed": [
        "otel_spans",
        "traces",
        "scores",
        "score_metadata",
        "feeds",
        "windows",
        "window_annotations",
        "window_scores",
    ],
}
"""What the work writes to: annotations are never updated, and little is ever deleted."""


def gather_database(engine: sa.Engine) -> Database:
    """Look at a database that answers."""
    with reading(engine) as connection:
        version, user, read_only, may_create, may_stage = connection.execute(_SERVER).one()
        server = Server(version, user, read_only, may_create, may_stage)
        if not connection.scalar(sa.text("SELECT to_regnamespace(:schema) IS NOT NULL"), {"schema": SCHEMA}):
            return Database(server=server)
        found = Database(server=server, schema=_schema(connection))
        return replace(found, redaction=_key_problem(connection)) if found.usable else found


def _key_problem(connection: sa.Connection) -> str | None:
    if has_own_key():
        return None
    try:
        refuse_other_key(connection, redaction_key())
    except RedactionKeyError as error:
        return str(error)
    return None


def _schema(connection: sa.Connection) -> Schema | None:
    names = {"schema": SCHEMA}
    owned = bool(connection.scalar(_OWNED, names))
    expected = head_revision()
    if not connection.scalar(sa.text("SELECT has_schema_privilege(:schema, 'USAGE')"), names):
        return Schema(None, expected, newer=False, may_upgrade=owned, forbidden=("USAGE on the schema stepacc",))
    if connection.scalar(sa.select(sa.func.to_regclass(f"{SCHEMA}.alembic_version"))) is None:
        return None
    forbidden = tuple(f"{privilege} on {name}" for privilege, name in connection.execute(_FORBIDDEN, names | _WRITTEN))
    if "SELECT on alembic_version" in forbidden:
        return Schema(None, expected, newer=False, may_upgrade=owned, forbidden=forbidden)
    revision = current_revision(connection)
    return Schema(revision, expected, newer=_is_newer(connection), may_upgrade=owned, forbidden=forbidden)


def _is_newer(connection: sa.Connection) -> bool:
    try:
        check_schema(connection)
    except SchemaNewerError:
        return True
    except SchemaError:
        return False
    return False
