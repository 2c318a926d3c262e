"""The tables of Langfuse 2 that traces are read from."""

from collections.abc import Mapping

from stepacc_dagster.stores.read_columns import ReadColumn

SPANS = "observations"
TABLES: Mapping[str, tuple[ReadColumn, ...]] = {
    "traces": (
        ReadColumn("id", "text", "id of the trace, and of its root span", ("trace_id", "span_id", "parent_span_id")),
        ReadColumn(
            "timestamp",
            "timestamp",
            "time of the trace, UTC; the earlier of it and the earliest observation decides the window",
            ("start_time_unix_nano",),
        ),
        ReadColumn("name", "text", "name of the root span", ("name",)),
        ReadColumn("project_id", "text", "id of the project, as `store.project_ids` lists it"),
        ReadColumn("metadata", "jsonb", "metadata of the trace, such as its task id", ("attributes",)),
        ReadColumn("input", "jsonb", "input of the root span", ("attributes",)),
        ReadColumn("output", "jsonb", "output of the root span", ("attributes",)),
        ReadColumn("session_id", "text", "session of the trace", ("attributes",)),
        ReadColumn("user_id", "text", "user of the trace", ("attributes",)),
        ReadColumn("created_at", "timestamp", "when the row was written; bounds where changes are looked for"),
        ReadColumn("updated_at", "timestamp", "when the row last changed; tells what changed"),
    ),
    SPANS: (
        ReadColumn("id", "text", "id of the span", ("span_id",)),
        ReadColumn(
            "name", "text", "span name as written; that of the parent helps to tell tools", ("name", "attributes")
        ),
        ReadColumn("start_time", "timestamp", "start, UTC", ("start_time_unix_nano", "end_time_unix_nano")),
        ReadColumn("end_time", "timestamp", "end, UTC", ("end_time_unix_nano",)),
        ReadColumn(
            "parent_observation_id", "text", "id of the parent; NULL: a child of the root span", ("parent_span_id",)
        ),
        ReadColumn("type", "enum", "GENERATION, EVENT or SPAN", ("attributes",)),
        ReadColumn("trace_id", "text", "id of the trace", ("trace_id",)),
        ReadColumn("metadata", "jsonb", "metadata of the span", ("attributes",)),
        ReadColumn("model", "text", "name of the model", ("attributes",)),
        ReadColumn("input", "jsonb", "input of the span, such as a tool's arguments", ("attributes",)),
        ReadColumn("output", "jsonb", "output of the span, such as a tool's message", ("attributes",)),
        ReadColumn("level", "enum", "DEBUG, DEFAULT, WARNING or ERROR", ("status", "attributes")),
        ReadColumn("status_message", "text", "message beside the level", ("status_message",)),
        ReadColumn("completion_tokens", "integer", "tokens written", ("attributes",)),
        ReadColumn("prompt_tokens", "integer", "tokens read", ("attributes",)),
        ReadColumn("project_id", "text", "id of the project, as `store.project_ids` lists it"),
        ReadColumn("created_at", "timestamp", "when the row was written; bounds where changes are looked for"),
        ReadColumn("updated_at", "timestamp", "when the row last changed; tells what changed"),
        ReadColumn("calculated_total_cost", "numeric", "cost in US dollars", ("attributes",)),
    ),
}
"""What has to be there for traces to be read."""
