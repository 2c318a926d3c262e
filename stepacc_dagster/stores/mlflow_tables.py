"""The tables of an MLflow tracking server that traces are read from."""

from collections.abc import Mapping

from stepacc_dagster.stores.read_columns import ReadColumn

SPANS = "spans"
TABLES: Mapping[str, tuple[ReadColumn, ...]] = {
    "experiments": (
        ReadColumn("experiment_id", "integer", "number of the experiment"),
        ReadColumn("name", "varchar", "name of the experiment, as `store.experiments` lists it"),
        ReadColumn("lifecycle_stage", "varchar", "active or deleted; deleted ones are read only where they are listed"),
    ),
    "trace_info": (
        ReadColumn("request_id", "varchar", "id of the trace"),
        ReadColumn("experiment_id", "integer", "experiment of the trace"),
        ReadColumn("timestamp_ms", "bigint", "start, ms since 1970; where changes are looked for"),
        ReadColumn("status", "varchar", "state of the trace; tells what changed"),
        ReadColumn("db_payload_generation", "integer", "writes to the spans of the trace; tells what changed"),
        ReadColumn("session_id", "varchar", "session of the trace, which its root span gets", ("attributes",)),
    ),
    SPANS: (
        ReadColumn("trace_id", "varchar", "id of the trace", ("trace_id",)),
        ReadColumn("experiment_id", "integer", "experiment of the trace"),
        ReadColumn("span_id", "varchar", "id of the span", ("span_id",)),
        ReadColumn("parent_span_id", "varchar", "id of the parent; NULL: the span has none", ("parent_span_id",)),
        ReadColumn("name", "text", "span name as written", ("name",)),
        ReadColumn("type", "varchar", "MLflow's kind of the span, where the attributes name none", ("attributes",)),
        ReadColumn("status", "varchar", "OK, ERROR or UNSET", ("status",)),
        ReadColumn(
            "start_time_unix_nano",
            "bigint",
            "start, ns since 1970; that of the earliest span decides the window of the trace",
            ("start_time_unix_nano",),
        ),
        ReadColumn("end_time_unix_nano", "bigint", "end, ns since 1970", ("end_time_unix_nano",)),
        ReadColumn(
            "content",
            "text",
            "the span as JSON, whose attribute values are JSON text once more; empty where MLflow archived it",
            ("attributes", "events", "status_message"),
        ),
    ),
    "trace_tags": (
        ReadColumn("request_id", "varchar", "id of the trace"),
        ReadColumn("key", "varchar", "name of a tag, which the root span gets as attribute", ("attributes",)),
        ReadColumn("value", "varchar", "value of the tag", ("attributes",)),
    ),
    "trace_request_metadata": (
        ReadColumn("request_id", "varchar", "id of the trace"),
        ReadColumn("key", "varchar", "name of an entry, which the root span gets as attribute", ("attributes",)),
        ReadColumn("value", "varchar", "value of the entry", ("attributes",)),
    ),
}
"""What has to be there for traces to be read."""
