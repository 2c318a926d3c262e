"""The version of the schema `stepacc`: bringing it up to date, and refusing to work on another one."""

from functools import lru_cache
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from stepacc_dagster.errors import SchemaMissingError, SchemaNewerError, SchemaOlderError
from stepacc_dagster.storage.columns import SCHEMA
from stepacc_dagster.storage.locks import lock

_MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(engine: sa.Engine) -> str:
    """Create the schema, or bring it up to date, and return its revision.

    Safe to run twice and from several processes at once: one transaction under one lock does all of it, so the others
    wait and then find nothing to do, and a failure leaves the schema as it was.

    Raises:
        SchemaNewerError: the database is of a revision that this version of stepacc does not know.
    """
    # READ COMMITTED, so that whoever waited for the lock sees what the other one did.
    with engine.connect().execution_options(isolation_level="READ COMMITTED") as conn, conn.begin():
        lock(conn, "schema")
        _refuse_newer(current_revision(conn))
        if (
            conn.scalar(sa.select(sa.func.to_regnamespace(SCHEMA))) is None
        ):  # IF NOT EXISTS asks for the right to create
            conn.execute(sa.schema.CreateSchema(SCHEMA))
        config = _config()
        config.attributes["connection"] = conn
        command.upgrade(config, "head")
    return head_revision()


def check_schema(conn: sa.Connection) -> None:
    """Do nothing if the database has the schema this version of stepacc works with.

    Raises:
        SchemaMissingError: it has none.
        SchemaOlderError: it is older.
        SchemaNewerError: it is of a revision that this version of stepacc does not know.
    """
    revision = current_revision(conn)
    if revision is None:
        msg = f"The database {_name(conn)} has no tables of stepacc; run `stepacc db upgrade`."
        raise SchemaMissingError(msg)
    _refuse_newer(revision)
    if revision != head_revision():
        msg = (
            f"The tables of stepacc in the database {_name(conn)} are of revision {revision}, and this version "
            f"works with {head_revision()}; run `stepacc db upgrade`."
        )
        raise SchemaOlderError(msg)


def current_revision(conn: sa.Connection) -> str | None:
    """Return the revision of the schema in the database, or None where there is none."""
    if conn.scalar(sa.select(sa.func.to_regclass(f"{SCHEMA}.alembic_version"))) is None:
        return None
    revision: str | None = conn.scalar(sa.text("SELECT version_num FROM stepacc.alembic_version"))
    return revision


def head_revision() -> str:
    """Return the revision that this version of stepacc works with."""
    return _revisions()[0]


@lru_cache(maxsize=1)
def _revisions() -> tuple[str, ...]:
    return tuple(script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions())


def _refuse_newer(revision: str | None) -> None:
    if revision is not None and revision not in _revisions():
        msg = (
            f"The tables of stepacc in the database are of revision {revision}, which this version does not know "
            f"(it knows up to {head_revision()}); upgrade stepacc."
        )
        raise SchemaNewerError(msg)


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


def _name(conn: sa.Connection) -> str:
    return repr(conn.scalar(sa.select(sa.func.current_database())))
