"""What changed in a trace store is told by its windows: late spans included, and nothing twice."""

import json

import pytest
import sqlalchemy as sa

from stepacc_core.model import RawSpan
from stepacc_dagster.storage.raw_spans import land_spans
from stepacc_dagster.stores.base import Changes
from stepacc_dagster.stores.settings import (
    LangfuseV2Settings,
    MlflowSettings,
    OtelSpansSettings,
    PhoenixSettings,
    StoreSettings,
)
from stepacc_dagster.windows import WindowKind, window_of
from tests.integration.store_access import DAY, SETTINGS, SOURCE, TRUE_CALLS, StoreName, load, move, opened, read, run

STORES: tuple[StoreName, ...] = ("phoenix", "mlflow", "langfuse_v2")
TUESDAY = window_of("2026-11-24", "daily")
NOON = 43_200_000_000_000
NOON_OF_TUESDAY = TUESDAY.start_ns + NOON

# A late child of a trace: a tool call after all others. Writers of the stores do just this.
LATE_SPANS: dict[StoreName, tuple[str, ...]] = {
    "phoenix": (
        """INSERT INTO spans
           SELECT (SELECT max(id) + 1 FROM spans), trace_rowid, 'late', parent_id, 'late_tool', 'TOOL',
               start_time + interval '1 hour', end_time + interval '1 hour',
               '{"openinference": {"span": {"kind": "TOOL"}}, "tool": {"name": "late_tool"}}', '[]', 'OK', ''
           FROM spans WHERE parent_id IS NOT NULL AND trace_rowid = (SELECT id FROM traces WHERE trace_id = :id)
           ORDER BY start_time DESC LIMIT 1""",
    ),
    "mlflow": (
        """INSERT INTO spans SELECT trace_id, experiment_id, 'late', parent_span_id, 'late_tool', 'TOOL', 'OK',
               start_time_unix_nano + 3600000000000, end_time_unix_nano + 3600000000000, '{}'
           FROM spans WHERE trace_id = :id AND parent_span_id IS NOT NULL ORDER BY start_time_unix_nano DESC LIMIT 1""",
        "UPDATE trace_info SET db_payload_generation = db_payload_generation + 1 WHERE request_id = :id",
    ),
    "langfuse_v2": (
        """INSERT INTO observations (id, name, start_time, parent_observation_id, type, trace_id, input, output,
               project_id, created_at, updated_at)
           SELECT 'late', 'late_tool', start_time + interval '1 hour', parent_observation_id, 'SPAN', trace_id, '"{}"',
               '{"type": "tool", "tool_call_id": "late"}', project_id, updated_at + interval '1 day',
               (SELECT max(updated_at) FROM observations) + interval '1 hour'
           FROM observations WHERE trace_id = :id ORDER BY start_time DESC LIMIT 1""",
    ),
}


def changes(
    engine: sa.Engine, settings: StoreSettings, cursor: str | None = None, kind: WindowKind = "daily"
) -> Changes:
    """Ask a store once."""
    with opened(engine, settings) as reader:
        return reader.changes(cursor, kind)


def add_late_span(engine: sa.Engine, store: StoreName, trace_id: str) -> None:
    """Let a span of a trace arrive late."""
    for statement in LATE_SPANS[store]:
        run(engine, statement, id=trace_id)


def two_days(engine: sa.Engine, store: StoreName) -> str:
    """Fill a store with traces of two days, and return the one of the earlier day."""
    load(engine, store)
    early = min(TRUE_CALLS[store])
    move(engine, store, early, NOON_OF_TUESDAY)
    return early


@pytest.mark.parametrize("store", STORES)
def test_from_the_beginning_every_window_with_traces_has_changed(engine: sa.Engine, store: StoreName) -> None:
    two_days(engine, store)

    assert changes(engine, SETTINGS[store]()).windows == (TUESDAY.key, DAY.key)
    assert changes(engine, SETTINGS[store](), kind="hourly").windows == ("2026-11-24-12:00", "2026-11-30-10:00")


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("foreign", ["", "17", "[]", '{"by":"another"}', "no JSON"])
def test_a_cursor_of_another_store_means_from_the_beginning(engine: sa.Engine, store: StoreName, foreign: str) -> None:
    two_days(engine, store)

    assert changes(engine, SETTINGS[store](), foreign) == changes(engine, SETTINGS[store]())


@pytest.mark.parametrize("store", STORES)
def test_nothing_new_gives_no_windows_and_the_same_cursor(engine: sa.Engine, store: StoreName) -> None:
    two_days(engine, store)
    cursor = changes(engine, SETTINGS[store]()).cursor

    assert changes(engine, SETTINGS[store](), cursor) == Changes((), cursor)


@pytest.mark.parametrize("store", STORES)
def test_a_late_child_changes_the_window_of_its_trace_only_and_once(engine: sa.Engine, store: StoreName) -> None:
    early = two_days(engine, store)
    settings = SETTINGS[store]()
    cursor, before = changes(engine, settings).cursor, read(engine, settings)
    add_late_span(engine, store, early)

    told = changes(engine, settings, cursor)

    assert told.windows == (TUESDAY.key,)
    assert changes(engine, settings, told.cursor) == Changes((), told.cursor)
    assert "late_tool" in {span.name for span in read(engine, settings, TUESDAY)[early].spans}
    assert read(engine, settings) == before


@pytest.mark.parametrize("store", STORES)
def test_a_store_without_traces_has_no_changes_until_there_are_some(engine: sa.Engine, store: StoreName) -> None:
    load(engine, store)
    tables = {"phoenix": "projects", "mlflow": "trace_info", "langfuse_v2": "traces, observations"}
    run(engine, f"TRUNCATE {tables[store]} CASCADE")

    empty = changes(engine, SETTINGS[store]())

    assert empty.windows == ()
    assert changes(engine, SETTINGS[store](), empty.cursor).windows == ()


@pytest.mark.parametrize(("store", "name"), [("phoenix", "projects"), ("mlflow", "experiments")])
def test_spans_of_other_projects_change_nothing(engine: sa.Engine, store: StoreName, name: str) -> None:
    early = two_days(engine, store)
    other = {"phoenix": "adk", "mlflow": "otlp-strands"}[store]
    settings = SETTINGS[store](**{name: (other,)})
    cursor = changes(engine, settings).cursor
    add_late_span(engine, store, early)

    assert changes(engine, settings, cursor).windows == ()


def test_a_transaction_of_phoenix_that_commits_late_is_not_missed(engine: sa.Engine) -> None:
    """Its spans have lower numbers than those seen before; they are told once, and nothing else again."""
    early = two_days(engine, "phoenix")
    settings = PhoenixSettings()
    run(engine, "UPDATE spans SET id = id + 100 WHERE id > 100")
    first = changes(engine, settings)
    with engine.connect() as slow:
        slow.execute(sa.text(LATE_SPANS["phoenix"][0].replace("(SELECT max(id) + 1 FROM spans)", "150")), {"id": early})
        during = changes(engine, settings, first.cursor)
        slow.commit()
    after = changes(engine, settings, during.cursor)

    assert during == Changes((), first.cursor)
    assert after.windows == (TUESDAY.key,)
    assert changes(engine, settings, after.cursor) == Changes((), after.cursor)
    assert json.loads(after.cursor)["missing"] == [[101, 149], [151, 200]]


def test_numbers_of_phoenix_that_never_come_are_forgotten(engine: sa.Engine) -> None:
    load(engine, "phoenix")
    run(engine, "UPDATE spans SET id = id + 1000 WHERE id > 100")

    assert json.loads(changes(engine, PhoenixSettings(reread_ids=30)).cursor)["missing"] == []
    assert json.loads(changes(engine, PhoenixSettings()).cursor)["missing"] == [[101, 1100]]


def test_a_span_that_starts_before_its_trace_did_is_told_under_the_new_window(engine: sa.Engine) -> None:
    load(engine, "phoenix")
    cursor = changes(engine, PhoenixSettings()).cursor
    add_late_span(engine, "phoenix", min(TRUE_CALLS["phoenix"]))
    run(
        engine,
        "UPDATE traces SET start_time = '2026-11-24 12:00Z' WHERE trace_id = :id",
        id=min(TRUE_CALLS["phoenix"]),
    )

    assert changes(engine, PhoenixSettings(), cursor).windows == (TUESDAY.key,)


def test_the_end_of_a_trace_of_mlflow_is_a_change(engine: sa.Engine) -> None:
    early = two_days(engine, "mlflow")
    run(engine, "UPDATE trace_info SET status = 'IN_PROGRESS' WHERE request_id = :id", id=early)
    cursor = changes(engine, MlflowSettings()).cursor
    run(engine, "UPDATE trace_info SET status = 'OK' WHERE request_id = :id", id=early)

    assert changes(engine, MlflowSettings(), cursor).windows == (TUESDAY.key,)


def test_a_deleted_trace_of_mlflow_is_a_change(engine: sa.Engine) -> None:
    early = two_days(engine, "mlflow")
    cursor = changes(engine, MlflowSettings()).cursor
    for table in ("spans", "trace_tags", "trace_request_metadata", "assessments"):
        column = "request_id" if table.startswith("trace_") else "trace_id"
        run(engine, f"DELETE FROM {table} WHERE {column} = :id", id=early)  # noqa: S608
    run(engine, "DELETE FROM trace_info WHERE request_id = :id", id=early)

    told = changes(engine, MlflowSettings(), cursor)

    assert told.windows == (TUESDAY.key,)
    assert changes(engine, MlflowSettings(), told.cursor) == Changes((), told.cursor)


def test_a_trace_of_mlflow_with_a_time_of_its_own_is_told_under_the_window_of_its_spans(engine: sa.Engine) -> None:
    early = two_days(engine, "mlflow")
    run(engine, "UPDATE trace_info SET timestamp_ms = 1796035079007 WHERE request_id = :id", id=early)
    cursor = changes(engine, MlflowSettings()).cursor
    add_late_span(engine, "mlflow", early)

    assert TUESDAY.key in changes(engine, MlflowSettings(), cursor).windows


def test_traces_older_than_the_look_back_are_told_at_the_beginning_only(engine: sa.Engine) -> None:
    """The cursor does not grow with the history."""
    load(engine, "mlflow")
    early, *others = sorted(TRUE_CALLS["mlflow"])
    move(engine, "mlflow", early, window_of("2024-02-20", "daily").start_ns + NOON)
    for trace_id in others:
        move(engine, "mlflow", trace_id, window_of("2024-02-29", "daily").start_ns + NOON)
    settings = MlflowSettings(look_back_days=7)
    first = changes(engine, settings)
    add_late_span(engine, "mlflow", early)

    assert first.windows == ("2024-02-20", "2024-02-29")
    assert len(json.loads(first.cursor)["seen"]) == 1
    assert changes(engine, settings, first.cursor) == Changes((), first.cursor)
    assert changes(engine, MlflowSettings(look_back_days=10), first.cursor).windows == ("2024-02-20",)


def test_a_row_of_langfuse_that_shows_after_newer_ones_is_not_missed(engine: sa.Engine) -> None:
    """Its transaction committed late, or its server's clock is slow: within the margin, it is told once."""
    early = two_days(engine, "langfuse_v2")
    settings = LangfuseV2Settings(reread_seconds=60)
    cursor = changes(engine, settings).cursor
    add_late_span(engine, "langfuse_v2", early)
    before_the_newest = "(SELECT max(updated_at) FROM traces) - interval '30 s'"
    run(engine, f"UPDATE observations SET updated_at = {before_the_newest} WHERE id = 'late'")  # noqa: S608

    told = changes(engine, settings, cursor)

    assert told.windows == (TUESDAY.key,)
    assert changes(engine, settings, told.cursor) == Changes((), told.cursor)


def test_an_update_of_a_row_of_langfuse_is_a_change(engine: sa.Engine) -> None:
    early = two_days(engine, "langfuse_v2")
    cursor = changes(engine, LangfuseV2Settings()).cursor
    run(engine, "UPDATE traces SET updated_at = updated_at + interval '5 s' WHERE id = :id", id=early)

    told = changes(engine, LangfuseV2Settings(), cursor)

    assert told.windows == (TUESDAY.key,)
    assert changes(engine, LangfuseV2Settings(), told.cursor) == Changes((), told.cursor)


def test_the_own_table_tells_what_arrived(migrated_engine: sa.Engine) -> None:
    _land(migrated_engine, RawSpan("t1", "a", "root", start_time_unix_nano=NOON_OF_TUESDAY))
    _land(migrated_engine, RawSpan("t2", "a", "root", start_time_unix_nano=DAY.start_ns))
    first = changes(migrated_engine, OtelSpansSettings())
    _land(migrated_engine, RawSpan("t1", "b", "late", "a", start_time_unix_nano=DAY.start_ns))
    second = changes(migrated_engine, OtelSpansSettings(), first.cursor)

    assert first.windows == (TUESDAY.key, DAY.key)
    assert second.windows == (TUESDAY.key,)
    assert changes(migrated_engine, OtelSpansSettings(), second.cursor) == Changes((), second.cursor)


def test_a_span_written_by_sql_shows_whenever_its_transaction_ends(migrated_engine: sa.Engine) -> None:
    """Transactions overlap in any order: the one that wrote first ends last, after looks that saw the others."""
    settings = OtelSpansSettings()
    with migrated_engine.connect() as first, migrated_engine.connect() as second:
        _insert(first, "t1", NOON_OF_TUESDAY)
        _insert(second, "t2", DAY.start_ns)
        second.commit()
        during = changes(migrated_engine, settings)
        second.execute(sa.text("SELECT pg_current_xact_id()"))
        later = changes(migrated_engine, settings, during.cursor)
        first.commit()
        ended = changes(migrated_engine, settings, later.cursor)
        _insert(second, "t3", window_of("2026-11-27", "daily").start_ns)
        second.commit()

    assert (during.windows, later, ended.windows) == ((DAY.key,), Changes((), during.cursor), (TUESDAY.key,))
    last = changes(migrated_engine, settings, ended.cursor)
    assert last.windows == ("2026-11-27",)
    assert changes(migrated_engine, settings, last.cursor) == Changes((), last.cursor)


def test_a_span_changed_by_sql_is_a_change_and_one_set_to_what_it_was_is_none(migrated_engine: sa.Engine) -> None:
    with migrated_engine.begin() as connection:
        _insert(connection, "t1", NOON_OF_TUESDAY)
        _insert(connection, "t2", DAY.start_ns)
    cursor = changes(migrated_engine, OtelSpansSettings()).cursor
    run(migrated_engine, "UPDATE stepacc.otel_spans SET status = 'UNSET'")
    assert changes(migrated_engine, OtelSpansSettings(), cursor) == Changes((), cursor)
    run(migrated_engine, "UPDATE stepacc.otel_spans SET status = 'OK' WHERE trace_id = 't1'")
    assert changes(migrated_engine, OtelSpansSettings(), cursor).windows == (TUESDAY.key,)


def test_a_cursor_that_is_ahead_of_the_server_means_from_the_beginning(migrated_engine: sa.Engine) -> None:
    """After a dump is restored on a new server, transactions are numbered from the beginning, and rows keep theirs."""
    with migrated_engine.begin() as connection:
        _insert(connection, "t1", NOON_OF_TUESDAY)
        connection.execute(sa.text("ALTER TABLE stepacc.otel_spans DISABLE TRIGGER rewritten"))
        connection.execute(sa.text("UPDATE stepacc.otel_spans SET written_in = '9000000000'"))
        connection.execute(sa.text("ALTER TABLE stepacc.otel_spans ENABLE TRIGGER rewritten"))
    ahead = '{"by":"transactions","seen":"9000000001:9000000001:"}'

    anew = changes(migrated_engine, OtelSpansSettings(), ahead)

    assert anew == changes(migrated_engine, OtelSpansSettings())
    assert anew.windows == (TUESDAY.key,)
    assert changes(migrated_engine, OtelSpansSettings(), anew.cursor) == Changes((), anew.cursor)


def _insert(connection: sa.Connection, trace_id: str, start_ns: int) -> None:
    """Write a span as whoever has the table before him would."""
    connection.execute(
        sa.text("""
            INSERT INTO stepacc.otel_spans (source, trace_id, span_id, name, start_time_unix_nano, status,
                status_message, attributes, events, resource, scope_name, scope_version)
            VALUES (:source, :trace_id, 'a', 'root', :start, 'UNSET', '', '{}', '[]', '{}', '', '')
        """),
        {"source": SOURCE, "trace_id": trace_id, "start": start_ns},
    )


def _land(engine: sa.Engine, span: RawSpan) -> None:
    with engine.begin() as connection:
        land_spans(connection, SOURCE, [span])
