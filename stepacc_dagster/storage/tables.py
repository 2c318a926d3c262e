"""The tables of the schema `stepacc`, as SQLAlchemy Core sees them.

A database gets them from the migrations, never from here; a test holds that the two are equal. All
times of spans are nanoseconds since the Unix epoch (bigint), since they decide the order of steps. Ids
are text in code point order (`COLLATE "C"`), the same on every server. There are no foreign keys
from spans to traces: they are written together under one lock, and a check per row would double
the cost of an ingest.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA = "stepacc"

metadata = sa.MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(constraint_name)s",
        "ck": "%(table_name)s_%(constraint_name)s",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
    },
)

arrivals = sa.Sequence("arrivals", metadata=metadata, schema=SCHEMA)
"""Numbers the landings of raw spans, over all sources."""


def _text(name: str, comment: str, *, null: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text(collation="C"), nullable=null, comment=comment)


def _ns(name: str, comment: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=True, comment=f"{comment}, ns since 1970; NULL: not recorded")


def _int(name: str, comment: str, *, null: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=null, comment=comment)


def _json(name: str, comment: str, *, null: bool = False) -> sa.Column[Any]:
    return sa.Column(name, JSONB(none_as_null=True), nullable=null, comment=comment)


def _moment(name: str, comment: str) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=sa.text("now()"), comment=comment)


def _source() -> sa.Column[str]:
    return _text("source", "name of the source: one trace store with its settings")


def _window() -> sa.Column[str]:
    return _text("window_key", "Dagster partition key of the window, UTC: 2026-11-30 or 2026-11-30-14:00")


otel_spans = sa.Table(
    "otel_spans",
    metadata,
    _source(),
    _text("trace_id", "lower-case hex, or whatever text the producer uses"),
    _text("span_id", "unique within its trace"),
    _text("parent_span_id", "NULL: the span has no parent", null=True),
    _text("name", "span name as written"),
    _ns("start_time_unix_nano", "start"),
    _ns("end_time_unix_nano", "end"),
    _text("status", "OK, ERROR or UNSET"),
    _text("status_message", "message beside the status, or empty"),
    _json("attributes", "attributes as written, {name: value}"),
    _json("events", "span events and joined log records, [{name, time_unix_nano, attributes}]"),
    _json("resource", "resource attributes, {name: value}"),
    _text("scope_name", "name of the instrumentation scope"),
    _text("scope_version", "version of the instrumentation scope"),
    _moment("first_seen_at", "when the span first landed; never changes. Decides the window of a trace without times"),
    _moment("ingested_at", "when the present content landed"),
    sa.Column(
        "arrival",
        sa.BigInteger(),
        nullable=False,
        server_default=arrivals.next_value(),
        comment="number of the landing; a new one whenever the content changes. Grows in commit order within a source",
    ),
    sa.PrimaryKeyConstraint("source", "trace_id", "span_id"),
    sa.Index(
        "otel_spans_start",
        "source",
        "start_time_unix_nano",
        postgresql_include=["trace_id"],
        postgresql_where=sa.text("start_time_unix_nano IS NOT NULL"),
    ),
    sa.Index(
        "otel_spans_untimed",
        "source",
        "first_seen_at",
        postgresql_include=["trace_id"],
        postgresql_where=sa.text("start_time_unix_nano IS NULL"),
    ),
    sa.Index("otel_spans_arrival", "source", "arrival", postgresql_include=["trace_id"]),
    comment="Raw spans landed by `stepacc import` and `stepacc collect`. One row per span, its newest content.",
)

traces = sa.Table(
    "traces",
    metadata,
    _source(),
    _text("trace_id", "id of the trace"),
    _text("session_id", "session it belongs to; NULL: it makes no session", null=True),
    _text("task_id", "task it worked on, for task-level annotations", null=True),
    _window(),
    _ns("start_time_unix_nano", "start of the earliest timed span"),
    _ns("end_time_unix_nano", "latest end of a span"),
    _text("root_span_id", "root span; NULL: the trace has none", null=True),
    _text("status", "status of the root span; UNSET without a root"),
    sa.Column(
        "settled", sa.Boolean(), nullable=False, comment="true once it has a root and every span has its end time"
    ),
    _int("span_count", "canonical spans of the trace"),
    sa.Column("spans_hash", sa.LargeBinary(), nullable=False, comment="SHA-256 of the canonical spans, in order"),
    _json("gaps", "what a reader had to assume, [{kind, detail, span_ids}]"),
    _moment("first_ingested_at", "when the trace was first written"),
    _moment("changed_at", "when its spans or identity last changed"),
    sa.PrimaryKeyConstraint("source", "trace_id"),
    sa.Index("traces_window", "source", "window_key", "trace_id"),
    sa.Index("traces_session", "source", "session_id", "trace_id", postgresql_where=sa.text("session_id IS NOT NULL")),
    comment="One row per trace, in the window in which it starts.",
)

spans = sa.Table(
    "spans",
    metadata,
    _source(),
    _text("trace_id", "trace of the span"),
    _text("span_id", "unique within its trace"),
    _int("position", "place among the spans of its trace, from 0"),
    _text("kind", "TOOL, AGENT, LLM, CHAIN, RETRIEVER, ... or UNKNOWN"),
    _text("name", "span name as written"),
    _text("parent_span_id", "NULL: the span has no parent", null=True),
    _ns("start_time_unix_nano", "start"),
    _ns("end_time_unix_nano", "end"),
    _text("status", "OK, ERROR or UNSET"),
    _text("tool_name", "bare name of the invoked tool", null=True),
    _text("tool_full_name", "tool name as written, where it differs", null=True),
    _json("tool_arguments", "arguments of the call", null=True),
    _text("tool_call_id", "id that ties the call to the completion that asked for it", null=True),
    _text("agent_name", "name of the agent", null=True),
    _json("tool_calls", "calls asked for in the completion, [{name, id, arguments, full_name}]; NULL: none", null=True),
    sa.Column(
        "calls_announced",
        sa.Boolean(),
        nullable=False,
        comment="true when the completion asked for tools whose calls were not recorded",
    ),
    _json("output", "output of the span", null=True),
    sa.Column("input_tokens", sa.BigInteger(), comment="tokens read"),
    sa.Column("output_tokens", sa.BigInteger(), comment="tokens written"),
    sa.Column("cost_usd", sa.Double(), comment="cost in US dollars, as recorded"),
    sa.PrimaryKeyConstraint("source", "trace_id", "span_id"),
    comment="Canonical spans (canonical_partition_v1): one vocabulary, whatever convention the producer followed.",
)

sessions = sa.Table(
    "sessions",
    metadata,
    _source(),
    _text("session_id", "id of the session"),
    _text("task_id", "task of its first trace", null=True),
    _text("window_key", "home window: that of its first trace, in which the session is scored"),
    _text("first_trace_id", "the trace that starts first, then by id; untimed traces come last"),
    _ns("start_time_unix_nano", "start of its first trace"),
    _ns("end_time_unix_nano", "latest end of a span"),
    _int("trace_count", "traces of the session, in whatever window"),
    _moment("changed_at", "when the row last changed"),
    sa.PrimaryKeyConstraint("source", "session_id"),
    sa.Index("sessions_window", "source", "window_key", "session_id"),
    comment="One row per session; derived from its traces.",
)

annotations = sa.Table(
    "annotations",
    metadata,
    sa.Column("id", sa.BigInteger(), sa.Identity(always=True), comment="id of the revision; scores refer to it"),
    _source(),
    _text("target_type", "trace, session or task"),
    _text("target_id", "id of the trace, session or task"),
    _text("partition_type", "what it sets the expectation of: trace or session"),
    _text("key", "what is said, such as expected_steps"),
    _int("revision", "1, 2, 3, ... per target, partition type and key; the newest is in force"),
    _json("value", "the value as given, valid or not; NULL: a withdrawal", null=True),
    _text("value_hash", "SHA-256 of the value's canonical JSON, hex; NULL: a withdrawal", null=True),
    sa.Column(
        "withdrawn",
        sa.Boolean(),
        sa.Computed("value IS NULL", persisted=True),
        nullable=False,
        comment="true: nothing is said of this target any more",
    ),
    _text("author", "who said it"),
    _text("note", "why"),
    _text("origin", "where it came from, such as a file name"),
    _moment("created_at", "when the revision was written"),
    sa.PrimaryKeyConstraint("id"),
    sa.UniqueConstraint("source", "target_type", "target_id", "partition_type", "key", "revision", name="revision_key"),
    sa.CheckConstraint("target_type IN ('trace', 'session', 'task')", name="target_type"),
    sa.CheckConstraint("partition_type IN ('trace', 'session')", name="partition_type"),
    sa.CheckConstraint("(value IS NULL) = (value_hash IS NULL)", name="value"),
    comment="What people expect. Append-only: a change or a withdrawal is a new revision, no row is ever updated.",
)

scores = sa.Table(
    "scores",
    metadata,
    sa.Column("id", sa.BigInteger(), sa.Identity(always=True), comment="id of the evaluation"),
    _source(),
    _text("partition_type", "trace or session"),
    _text("partition_id", "id of the trace or session"),
    _text("session_id", "session of the partition", null=True),
    _text("task_id", "task of the partition", null=True),
    _window(),
    _text("metric", "name in the metric's manifest, such as agent.step_accuracy"),
    _text("metric_version", "version in the manifest; versions are never compared with each other"),
    _text("config_hash", "hash of the config fields that change what a score means"),
    sa.Column(
        "annotation_id",
        sa.BigInteger(),
        sa.ForeignKey(annotations.c.id),
        comment="annotation revision that set the expectation; NULL: it came from the config, or there was none",
    ),
    _text("reference_hash", "hash of the expectation it was scored against; NULL: there was none", null=True),
    _text("steps_hash", "hash of the observed steps; NULL: they could not be read", null=True),
    _text("expected_from", "annotations, column or config; NULL: there was none", null=True),
    _text("status", "scored, failed or not_applicable"),
    _text("code", "why it failed, such as missing_expected_steps", null=True),
    _text("reason", "why it is not applicable, such as no_required_kinds", null=True),
    _text("message", "the failure as a sentence", null=True),
    sa.Column(
        "score",
        sa.Double(),
        comment="0 to 1, only when scored: a failure is never a 0. Out of range is kept, for a check to show",
    ),
    _int("total_steps", "expected steps, a group's members counted one by one", null=True),
    _int("correct_steps", "expected steps that were observed where they were due", null=True),
    _int("edit_distance", "insertions, deletions and substitutions; NULL where the method has none", null=True),
    _text("dagster_run_id", "run that last confirmed the evaluation", null=True),
    _moment("evaluated_at", "when this result was written"),
    _moment("confirmed_at", "when the same evaluation was last made; the newest is current"),
    sa.PrimaryKeyConstraint("id"),
    sa.UniqueConstraint(
        "source",
        "partition_type",
        "partition_id",
        "metric",
        "metric_version",
        "config_hash",
        "annotation_id",
        "reference_hash",
        "steps_hash",
        name="evaluation_key",
        postgresql_nulls_not_distinct=True,
    ),
    sa.CheckConstraint("partition_type IN ('trace', 'session')", name="partition_type"),
    sa.CheckConstraint("status IN ('scored', 'failed', 'not_applicable')", name="status"),
    sa.CheckConstraint("(status = 'scored') = (score IS NOT NULL)", name="score"),
    sa.CheckConstraint("(status = 'failed') = (code IS NOT NULL)", name="code"),
    sa.CheckConstraint("(status = 'not_applicable') = (reason IS NOT NULL)", name="reason"),
    sa.Index("scores_window", "source", "window_key", "metric", "metric_version", "config_hash"),
    sa.Index("scores_annotation", "annotation_id", postgresql_where=sa.text("annotation_id IS NOT NULL")),
    comment="One row per evaluation: partition, metric version, config, expectation and steps. Making it again adds "
    "no row; it moves confirmed_at. Read current_scores, and name a version.",
)

score_metadata = sa.Table(
    "score_metadata",
    metadata,
    sa.Column(
        "score_id",
        sa.BigInteger(),
        sa.ForeignKey(scores.c.id, ondelete="CASCADE"),
        autoincrement=False,
        comment="the evaluation",
    ),
    _json("metadata", "what the metric says of the score: expected and actual steps, the alignment"),
    sa.PrimaryKeyConstraint("score_id"),
    comment="The metadata of one evaluation, apart from scores so that those stay narrow.",
)
