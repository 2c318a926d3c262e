"""A table of one's own is read by a mapping of its columns, whatever their names and types."""

import json
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_core.errors import ConfigError
from stepacc_dagster.stores.base import Changes
from stepacc_dagster.stores.errors import StoreSchemaError, UnfollowableError
from stepacc_dagster.stores.settings import MlflowSettings, PhoenixSettings, TableColumns, TableSettings
from stepacc_dagster.windows import window_of
from tests.integration.store_access import DAY, DAY_BEFORE, opened, read, run, tool_steps

FULL = TableColumns(
    trace_id="trace",
    span_id="id",
    name="title",
    start_time="began",
    parent_span_id="under",
    end_time="ended",
    attributes="attrs",
    events="events",
    resource="made by",
    status="state",
    status_message="why",
    scope_name="lib",
    arrival="seq",
)
# Types of the columns trace, id and under; of began and ended; of the documents; and of seq.
SHAPES: dict[str, tuple[str, str, str, str]] = {
    "nanoseconds": ("text", "bigint", "jsonb", "bigserial"),
    "timestamps": ("uuid", "timestamptz", "text", "timestamptz"),
    "naive timestamps": ("bytea", "timestamp", "json", "timestamp"),
}
IDS = {
    "text": ("t1", "t2", "a", "b", "c"),
    "uuid": tuple(f"00000000-0000-4000-8000-00000000000{digit}" for digit in "12abc"),
    "bytea": ("01" * 16, "02" * 16, "0a" * 8, "0b" * 8, "0c" * 8),
}
SECOND = 1_000_000_000


def table_of(engine: sa.Engine, shape: str) -> tuple[str, ...]:
    """Create the table `my spans` with two traces, one from before midnight; return the ids t1, t2, a, b, c."""
    ids, times, documents, arrival = SHAPES[shape]
    run(
        engine,
        f"""CREATE TABLE "my spans" (
            trace {ids}, id {ids}, under {ids}, title text, began {times}, ended {times}, attrs {documents},
            events {documents}, "made by" {documents}, state text, why text, lib text, seq {arrival}, tool text,
            agent text DEFAULT 'support'
        )""",
    )
    t1, t2, a, b, c = IDS[ids]
    insert(engine, shape, (t1, a, None), DAY.start_ns - 2 * SECOND)
    insert(engine, shape, (t1, b, a), DAY.start_ns + SECOND, title="run", operation="execute_tool", tool="look")
    insert(engine, shape, (t2, a, None), DAY.start_ns + 5 * SECOND)
    return t1, t2, a, b, c


def insert(engine: sa.Engine, shape: str, ids: tuple[str, str, str | None], start_ns: int, **changed: Any) -> None:
    """Write the row of a span that lasts a second, as its owner would; `ids` are of trace, span and parent."""
    kind, times, documents, arrival = SHAPES[shape]
    an_id = "decode(:{}, 'hex')" if kind == "bytea" else f"CAST(:{{}} AS {kind})"
    a_time = {
        "bigint": "CAST(:{} AS bigint)",
        "timestamptz": "to_timestamp(:{})",
        "timestamp": "(to_timestamp(:{}) AT TIME ZONE 'UTC')",
    }[times]
    now = {
        "bigserial": "DEFAULT",
        "timestamptz": "clock_timestamp()",
        "timestamp": "clock_timestamp() AT TIME ZONE 'UTC'",
    }[arrival]
    unit = 1 if times == "bigint" else SECOND
    statement = f"""
        INSERT INTO "my spans" VALUES (
            {an_id.format("trace")}, {an_id.format("span")}, {an_id.format("under")}, :title, {a_time.format("start")},
            {a_time.format("end")}, CAST(:attributes AS {documents}), CAST(:events AS {documents}),
            CAST(:resource AS {documents}), 'STATUS_CODE_ERROR', 'because', 'my lib', {changed.get("seq", now)}, :tool
        )
    """  # noqa: S608 (names of this module)
    run(
        engine,
        statement,
        **dict(zip(("trace", "span", "under"), ids, strict=True)),
        title=changed.get("title", "agent"),
        start=start_ns // unit,
        end=(start_ns + SECOND) // unit,
        attributes=json.dumps({"gen_ai.operation.name": changed.get("operation", "invoke_agent")}),
        events='[{"name": "e", "timestamp": "2026-11-30T00:00:01Z", "attributes": {"k": 1}}]',
        resource='{"service.name": "bot"}',
        tool=changed.get("tool"),
    )


def settings(columns: TableColumns = FULL, **changed: Any) -> TableSettings:
    """Return settings for the table of `table_of`."""
    return TableSettings("my spans", columns, **({"attribute_columns": {"gen_ai.tool.name": "tool"}} | changed))


def changes(engine: sa.Engine, cursor: str | None = None, **changed: Any) -> Changes:
    """Ask the table once."""
    with opened(engine, settings(**changed)) as reader:
        return reader.changes(cursor, "daily")


@pytest.mark.parametrize("shape", SHAPES)
def test_a_table_of_any_shape_is_read(engine: sa.Engine, shape: str) -> None:
    t1, t2, a, b, _ = table_of(engine, shape)

    with opened(engine, settings()) as reader:
        early, late = dict(reader.traces(DAY_BEFORE)), dict(reader.traces(DAY))

    assert (list(early), list(late)) == ([t1], [t2])
    root, tool = early[t1]
    assert (root.span_id, root.parent_span_id, tool.span_id, tool.parent_span_id) == (a, None, b, a)
    assert tool.start_time_unix_nano == DAY.start_ns + SECOND
    assert tool.end_time_unix_nano == DAY.start_ns + 2 * SECOND
    assert (tool.name, tool.status, tool.status_message, tool.scope_name) == ("run", "ERROR", "because", "my lib")
    assert tool.attributes == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    assert (tool.resource, tool.events[0].attributes) == ({"service.name": "bot"}, {"k": 1})
    assert tool.events[0].time_unix_nano == DAY.start_ns + SECOND
    assert [step.name for step in tool_steps(read(engine, settings(), DAY_BEFORE)[t1])] == ["look"]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_changed_is_told_by_a_number_or_a_time(engine: sa.Engine, shape: str) -> None:
    t1, _, a, _, c = table_of(engine, shape)
    first = changes(engine)
    insert(engine, shape, (t1, c, a), DAY.start_ns + 9 * SECOND)
    second = changes(engine, first.cursor)

    assert first.windows == (DAY_BEFORE.key, DAY.key)
    assert changes(engine, changes(engine).cursor).windows == ()
    assert second.windows == (DAY_BEFORE.key,)
    assert changes(engine, second.cursor) == Changes((), second.cursor)


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_that_show_late_are_not_missed(engine: sa.Engine, shape: str) -> None:
    t1, _, a, _, c = table_of(engine, shape)
    run(engine, 'UPDATE "my spans" SET seq = seq + 5' if shape == "nanoseconds" else "SELECT 1")
    cursor = changes(engine).cursor
    number = "4" if shape == "nanoseconds" else "(SELECT max(seq) FROM \"my spans\") - interval '20 s'"
    insert(engine, shape, (t1, c, a), DAY.start_ns + 9 * SECOND, seq=number)

    told = changes(engine, cursor)

    assert told.windows == (DAY_BEFORE.key,)
    assert changes(engine, told.cursor) == Changes((), told.cursor)


def test_the_fewest_columns_are_enough(engine: sa.Engine) -> None:
    t1, *_ = table_of(engine, "nanoseconds")
    few = TableColumns("trace", "id", "title", "began")

    spans = read(engine, settings(few), DAY_BEFORE)[t1].spans

    assert [(span.name, span.status, span.end_time_unix_nano) for span in spans] == [
        ("agent", "UNSET", None),
        ("run", "UNSET", None),
    ]
    with opened(engine, settings(few)) as reader, pytest.raises(UnfollowableError, match=r"columns\.arrival"):
        reader.changes(None, "daily")


@pytest.mark.parametrize(("unit", "divisor"), [("s", SECOND), ("ms", 1_000_000), ("us", 1_000)])
def test_numbers_may_be_in_another_unit(engine: sa.Engine, unit: str, divisor: int) -> None:
    t1, *_ = table_of(engine, "nanoseconds")
    run(engine, 'UPDATE "my spans" SET began = began / :by, ended = ended / :by', by=divisor)

    trace = read(engine, settings(time_unit=unit), DAY_BEFORE)[t1]

    assert trace.start_time_unix_nano == DAY.start_ns - 2 * SECOND
    assert changes(engine, time_unit=unit).windows == (DAY_BEFORE.key, DAY.key)
    assert list(read(engine, settings(time_unit=unit), window_of("2026-11-29-23:00", "hourly"))) == [t1]


def test_several_agents_in_one_table_are_told_apart(engine: sa.Engine) -> None:
    t1, t2, *_ = table_of(engine, "nanoseconds")
    run(engine, "UPDATE \"my spans\" SET agent = 'sales' WHERE trace = :id", id=t2)

    chosen: dict[str, Any] = {"project_column": "agent", "projects": ("sales",)}
    assert list(read(engine, settings(**chosen))) == [t2]
    assert read(engine, settings(**chosen), DAY_BEFORE) == {}
    assert changes(engine, **chosen).windows == (DAY.key,)
    assert list(read(engine, settings(project_column="agent", projects=("sales", "support")), DAY_BEFORE)) == [t1]


def test_nested_attributes_can_be_flattened(engine: sa.Engine) -> None:
    t1, *_ = table_of(engine, "nanoseconds")
    nested = {"tool": {"name": "deep"}, "openinference": {"span": {"kind": "TOOL"}}}
    run(engine, 'UPDATE "my spans" SET attrs = :attrs WHERE under IS NOT NULL', attrs=json.dumps(nested))

    assert [step.name for step in tool_steps(read(engine, settings(nested_attributes=True), DAY_BEFORE)[t1])] == [
        "deep"
    ]


def test_a_view_is_as_good_as_a_table(engine: sa.Engine) -> None:
    table_of(engine, "timestamps")
    run(engine, 'CREATE VIEW "my view" AS SELECT * FROM "my spans"')

    assert len(read(engine, TableSettings("my view", FULL))) == 1


def test_rows_without_a_start_or_with_one_beyond_the_calendar_cost_no_others(engine: sa.Engine) -> None:
    t1, t2, a, b, c = table_of(engine, "nanoseconds")
    run(engine, 'INSERT INTO "my spans" (trace, id, title, began) VALUES (:t, :c, NULL, NULL)', t=t1, c=c)
    run(engine, "INSERT INTO \"my spans\" (trace, id, title, began) VALUES ('odd', 'x', 'x', 9223372036854775807)")

    assert [span.span_id for span in read(engine, settings(), DAY_BEFORE)[t1].spans] == [a, b, c]
    assert list(read(engine, settings())) == [t2]
    assert DAY.key in changes(engine).windows


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"columns": TableColumns("trace", "id", "titel", "began")}, r"no column public\.my spans\.titel\. Correct"),
        ({"attribute_columns": {"x": "colour"}}, r"no column public\.my spans\.colour"),
        ({"project_column": "team"}, r"no column public\.my spans\.team"),
        ({"columns": TableColumns("trace", "id", "title", "title")}, r"\.title is of type text, and start_time has"),
        ({"columns": TableColumns("trace", "attrs", "title", "began")}, r"\.attrs is of type jsonb, and span_id has"),
        ({"columns": TableColumns("trace", "id", "title", "began", end_time="day")}, r"need the same"),
        ({"schema": "elsewhere"}, r"no table elsewhere\.my spans"),
    ],
)  # fmt: skip
def test_a_mapping_that_does_not_fit_the_table_is_an_error_that_names_the_column(
    engine: sa.Engine, changed: dict[str, Any], message: str
) -> None:
    table_of(engine, "nanoseconds")
    run(engine, 'ALTER TABLE "my spans" ADD day timestamptz')

    with pytest.raises(StoreSchemaError, match=message), opened(engine, settings(**changed)):
        pass


def test_nothing_can_be_written_through_the_reader(engine: sa.Engine) -> None:
    table_of(engine, "nanoseconds")

    with opened(engine, settings()) as reader, pytest.raises(sa.exc.InternalError, match="read-only transaction"):
        reader.connection.execute(sa.text('DELETE FROM "my spans"'))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: settings(time_unit="min"), r"time_unit of the table store is 'min'; use ns, us, ms, s\."),
        (lambda: settings(projects=("a",)), r"lists projects and no project_column"),
        (lambda: PhoenixSettings(reread_ids=-1), r"reread_ids of the trace store is -1; use 0 to 1000000\."),
        (lambda: MlflowSettings(look_back_days=0), r"look_back_days of the trace store is 0; use 1 to 3650\."),
    ],
)
def test_settings_that_cannot_work_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
