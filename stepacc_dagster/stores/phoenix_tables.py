"""The tables of Arize Phoenix that traces are read from."""

from collections.abc import Mapping

from stepacc_dagster.stores.read_columns import ReadColumn

SPANS = "spans"
TABLES: Mapping[str, tuple[ReadColumn, ...]] = {
    "projects": (
        ReadColumn("id", "integer", "number of the project"),
        ReadColumn("name", "varchar", "name of the project, as `store.projects` lists it"),
    ),
    "traces": (
        ReadColumn("id", "integer", "number of the trace, to which its spans refer"),
        ReadColumn("project_rowid", "integer", "project of the trace"),
        ReadColumn("trace_id", "varchar", "id of the trace", ("trace_id",)),
        ReadColumn("start_time", "timestamptz", "start of the earliest span; decides the window of the trace"),
    ),
    SPANS: (
        ReadColumn("id", "integer", "number of the span in order of arrival; tells what is new"),
        ReadColumn("trace_rowid", "integer", "trace of the span"),
        ReadColumn("span_id", "varchar", "id of the span", ("span_id",)),
        ReadColumn("parent_id", "varchar", "id of the parent; NULL: the span has none", ("parent_span_id",)),
        ReadColumn("name", "varchar", "span name as written", ("name",)),
        ReadColumn("span_kind", "varchar", "OpenInference kind, where the attributes name none", ("attributes",)),
        ReadColumn("start_time", "timestamptz", "start", ("start_time_unix_nano",)),
        ReadColumn("end_time", "timestamptz", "end", ("end_time_unix_nano",)),
        ReadColumn("attributes", "jsonb", "attributes; dotted names are objects in objects", ("attributes",)),
        ReadColumn("events", "jsonb", "span events", ("events",)),
        ReadColumn("status_code", "varchar", "OK, ERROR or UNSET", ("status",)),
        ReadColumn("status_message", "varchar", "message beside the status", ("status_message",)),
    ),
}
"""What has to be there for traces to be read."""
