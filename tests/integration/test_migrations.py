"""The migrations make the schema that `tables.py` describes, once, whoever runs them and how often."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from stepacc_dagster.errors import SchemaMissingError, SchemaNewerError, SchemaOlderError
from stepacc_dagster.storage import (  # noqa: F401 (they describe the tables)
    baseline_tables,
    erasure_tables,
    metric_configs,
    redaction_tables,
    schema,
    summary_tables,
    tables,
    views,
    work_tables,
    write_backs,
)
from stepacc_dagster.storage.columns import metadata
from stepacc_dagster.stores.otel_spans import OtelSpansStore
from stepacc_dagster.windows import window_of

_CATALOG = {
    "columns": """
        SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity,
               l.collname, pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, a.attnum)
        FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_collation l ON l.oid = a.attcollation
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.relnamespace = 'stepacc'::regnamespace AND c.relkind = 'r' AND c.relname <> 'alembic_version'
    """,
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'stepacc'::regnamespace AND conrelid <> 'stepacc.alembic_version'::regclass
          AND contype <> 'n' -- since PostgreSQL 18 NOT NULL is listed too; the columns show it
    """,
    "indexes": """
        SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'stepacc' AND tablename <> 'alembic_version'
    """,
    "relations": """
        SELECT relname, relkind, obj_description(oid, 'pg_class') FROM pg_class
        WHERE relnamespace = 'stepacc'::regnamespace AND relname NOT LIKE 'alembic_version%'
    """,
    "views": "SELECT viewname, definition FROM pg_views WHERE schemaname = 'stepacc'",
}


@pytest.fixture
def one_transaction(migrated_engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection whose changes to the schema are undone."""
    with migrated_engine.connect() as conn:
        yield conn
        conn.rollback()


def test_migrations_equal_the_tables(one_transaction: sa.Connection) -> None:
    """Columns, comments, constraints, indexes and views are the same by migration and by `tables.py`."""
    migrated = _catalog(one_transaction)
    one_transaction.execute(sa.text(f"DROP VIEW {', '.join(f'stepacc.{name}' for name in views.VIEWS)}"))
    metadata.drop_all(one_transaction)
    metadata.create_all(one_transaction)
    for name, query in views.VIEWS.items():
        comment = views.VIEW_COMMENTS[name].replace("'", "''")
        one_transaction.execute(sa.text(f"CREATE VIEW stepacc.{name} AS {query}"))
        one_transaction.execute(sa.text(f"COMMENT ON VIEW stepacc.{name} IS '{comment}'"))
    for kind, rows in _catalog(one_transaction).items():
        assert rows == migrated[kind], kind


def test_every_table_and_column_says_what_it_is() -> None:
    """A reader of the database finds a comment on every table, column and view."""
    for table in metadata.tables.values():
        assert table.comment, table.name
        assert not [column.name for column in table.columns if not column.comment]
    assert views.VIEWS.keys() == views.VIEW_COMMENTS.keys()


def test_upgrade_twice(engine: sa.Engine) -> None:
    """The second upgrade finds nothing to do and keeps the rows."""
    assert schema.upgrade(engine) == schema.head_revision()
    with engine.begin() as conn:
        conn.execute(
            sa.insert(tables.otel_spans).values(
                source="s", trace_id="t", span_id="a", name="n", status="OK", status_message="",
                attributes={}, events=[], resource={}, scope_name="", scope_version="",
            )
        )  # fmt: skip
    assert schema.upgrade(engine) == schema.head_revision()
    with engine.connect() as conn:
        schema.check_schema(conn)
        assert schema.current_revision(conn) == schema.head_revision()
        assert conn.scalar(sa.select(sa.func.count()).select_from(tables.otel_spans)) == 1


def test_upgrade_from_several_connections_at_once(engine: sa.Engine) -> None:
    """All of them succeed, whoever comes first."""
    with ThreadPoolExecutor(4) as pool:
        revisions = list(pool.map(lambda _: schema.upgrade(engine), range(4)))
    assert revisions == [schema.head_revision()] * 4


def test_missing_schema_says_what_to_run(engine: sa.Engine) -> None:
    """Without tables, the error names the command that makes them."""
    with engine.connect() as conn, pytest.raises(SchemaMissingError, match=r"run `stepacc db upgrade`"):
        schema.check_schema(conn)


def test_schema_without_revision_counts_as_missing(one_transaction: sa.Connection) -> None:
    """An emptied version table is no schema either."""
    one_transaction.execute(sa.text("DELETE FROM stepacc.alembic_version"))
    with pytest.raises(SchemaMissingError):
        schema.check_schema(one_transaction)


def test_an_upgrade_from_the_first_revision_keeps_what_is_there_and_marks_its_windows(engine: sa.Engine) -> None:
    """Nothing was followed before: every window that has a trace is ingested once more."""
    with engine.begin() as conn:
        conn.execute(sa.schema.CreateSchema("stepacc"))
        config = Config()
        config.set_main_option("script_location", str(files("stepacc_dagster.storage") / "migrations"))
        config.attributes["connection"] = conn
        command.upgrade(config, "0001")
        columns = "source, trace_id, window_key, status, settled, span_count, spans_hash, gaps"
        values = "'s', 't', '2025-11-03', 'OK', true, 0, '', '[]'"
        conn.execute(sa.text(f"INSERT INTO stepacc.traces ({columns}) VALUES ({values})"))  # noqa: S608
    schema.upgrade(engine)
    with engine.connect() as conn:
        assert conn.execute(sa.text("SELECT trace_id, gone_upstream_at FROM stepacc.traces")).all() == [("t", None)]
        marked = sa.text("SELECT source, window_key, change > ingested_change FROM stepacc.windows")
        assert conn.execute(marked).all() == [("s", "2025-11-03", True)]


def test_an_upgrade_carries_over_how_far_the_own_table_was_followed(engine: sa.Engine) -> None:
    """What came after the last look is told at the next one, and nothing else; what is no number is left alone."""
    span = "INSERT INTO stepacc.otel_spans SELECT {}, 'a', NULL, '', {}, NULL, '', '', '{{}}', '[]', '{{}}', '', ''"
    days = {day: window_of(f"2025-11-0{day}", "daily") for day in (3, 4, 5)}
    with engine.begin() as conn:
        conn.execute(sa.schema.CreateSchema("stepacc"))
        config = Config()
        config.set_main_option("script_location", str(files("stepacc_dagster.storage") / "migrations"))
        config.attributes["connection"] = conn
        command.upgrade(config, "0010")
        for source, trace_id, day in (("s", "t", 3), ("u", "t", 3), ("s", "t", 4), ("s", "v", 5)):
            conn.execute(sa.text(span.format(f"'{source}', '{trace_id}{day}'", days[day].start_ns)))
        conn.execute(sa.text("INSERT INTO stepacc.feeds (source, reads, cursor) VALUES ('s', '', '2'), ('x', '', 'y')"))
    schema.upgrade(engine)
    with engine.connect() as conn:
        cursors = {row.source: row.cursor for row in conn.execute(sa.text("SELECT * FROM stepacc.feeds"))}
    assert cursors["x"] == "y"
    with OtelSpansStore(engine, "s").open() as reader:
        told = reader.changes(cursors["s"], "daily")
        assert told.windows == (days[4].key, days[5].key)
        assert reader.changes(told.cursor, "daily").windows == ()
    with OtelSpansStore(engine, "u").open() as reader:
        assert reader.changes(None, "daily").windows == (days[3].key,)


def test_newer_schema_is_refused(migrated_engine: sa.Engine) -> None:
    """A revision nobody here knows is neither worked with nor upgraded."""
    with migrated_engine.begin() as conn:
        conn.execute(sa.text("UPDATE stepacc.alembic_version SET version_num = '9999'"))
    with migrated_engine.connect() as conn, pytest.raises(SchemaNewerError, match=r"9999.*upgrade stepacc"):
        schema.check_schema(conn)
    with pytest.raises(SchemaNewerError):
        schema.upgrade(migrated_engine)


def test_older_schema_says_what_to_run(migrated_engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A known revision that is not the newest gets the same advice as none."""
    schema_revision = schema.head_revision()
    monkeypatch.setattr(schema, "_revisions", lambda: ("next", schema_revision))
    advice = pytest.raises(SchemaOlderError, match=rf"{schema_revision}.*next.*run `stepacc db upgrade`")
    with migrated_engine.connect() as conn, advice:
        schema.check_schema(conn)


def _catalog(conn: sa.Connection) -> dict[str, list[tuple[Any, ...]]]:
    return {
        kind: sorted((tuple(row) for row in conn.execute(sa.text(query))), key=repr) for kind, query in _CATALOG.items()
    }
