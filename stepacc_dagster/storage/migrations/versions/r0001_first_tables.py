"""The first tables.

Revision ID: 0001
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0001"
down_revision = None

_STATEMENTS = """
CREATE SEQUENCE stepacc.arrivals;

CREATE TABLE stepacc.annotations (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    source TEXT COLLATE "C" NOT NULL,
    target_type TEXT COLLATE "C" NOT NULL,
    target_id TEXT COLLATE "C" NOT NULL,
    partition_type TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    revision INTEGER NOT NULL,
    value JSONB,
    value_hash TEXT COLLATE "C",
    withdrawn BOOLEAN GENERATED ALWAYS AS (value IS NULL) STORED NOT NULL,
    author TEXT COLLATE "C" NOT NULL,
    note TEXT COLLATE "C" NOT NULL,
    origin TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT annotations_pkey PRIMARY KEY (id),
    CONSTRAINT annotations_revision_key UNIQUE (source, target_type, target_id, partition_type, key, revision),
    CONSTRAINT annotations_target_type CHECK (target_type IN ('trace', 'session', 'task')),
    CONSTRAINT annotations_partition_type CHECK (partition_type IN ('trace', 'session')),
    CONSTRAINT annotations_value CHECK ((value IS NULL) = (value_hash IS NULL))
);
COMMENT ON TABLE stepacc.annotations IS 'What people expect. Append-only: a change or a withdrawal is a new revision, no row is ever updated.';
COMMENT ON COLUMN stepacc.annotations.id IS 'id of the revision; scores refer to it';
COMMENT ON COLUMN stepacc.annotations.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.annotations.target_type IS 'trace, session or task';
COMMENT ON COLUMN stepacc.annotations.target_id IS 'id of the trace, session or task';
COMMENT ON COLUMN stepacc.annotations.partition_type IS 'what it sets the expectation of: trace or session';
COMMENT ON COLUMN stepacc.annotations.key IS 'what is said, such as expected_steps';
COMMENT ON COLUMN stepacc.annotations.revision IS '1, 2, 3, ... per target, partition type and key; the newest is in force';
COMMENT ON COLUMN stepacc.annotations.value IS 'the value as given, valid or not; NULL: a withdrawal';
COMMENT ON COLUMN stepacc.annotations.value_hash IS 'SHA-256 of the value''s canonical JSON, hex; NULL: a withdrawal';
COMMENT ON COLUMN stepacc.annotations.withdrawn IS 'true: nothing is said of this target any more';
COMMENT ON COLUMN stepacc.annotations.author IS 'who said it';
COMMENT ON COLUMN stepacc.annotations.note IS 'why';
COMMENT ON COLUMN stepacc.annotations.origin IS 'where it came from, such as a file name';
COMMENT ON COLUMN stepacc.annotations.created_at IS 'when the revision was written';

CREATE TABLE stepacc.otel_spans (
    source TEXT COLLATE "C" NOT NULL,
    trace_id TEXT COLLATE "C" NOT NULL,
    span_id TEXT COLLATE "C" NOT NULL,
    parent_span_id TEXT COLLATE "C",
    name TEXT COLLATE "C" NOT NULL,
    start_time_unix_nano BIGINT,
    end_time_unix_nano BIGINT,
    status TEXT COLLATE "C" NOT NULL,
    status_message TEXT COLLATE "C" NOT NULL,
    attributes JSONB NOT NULL,
    events JSONB NOT NULL,
    resource JSONB NOT NULL,
    scope_name TEXT COLLATE "C" NOT NULL,
    scope_version TEXT COLLATE "C" NOT NULL,
    first_seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    ingested_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    arrival BIGINT DEFAULT nextval('stepacc.arrivals') NOT NULL,
    CONSTRAINT otel_spans_pkey PRIMARY KEY (source, trace_id, span_id)
);

CREATE INDEX otel_spans_arrival ON stepacc.otel_spans (source, arrival) INCLUDE (trace_id);

CREATE INDEX otel_spans_start ON stepacc.otel_spans (source, start_time_unix_nano) INCLUDE (trace_id) WHERE start_time_unix_nano IS NOT NULL;

CREATE INDEX otel_spans_untimed ON stepacc.otel_spans (source, first_seen_at) INCLUDE (trace_id) WHERE start_time_unix_nano IS NULL;
COMMENT ON TABLE stepacc.otel_spans IS 'Raw spans landed by `stepacc import` and `stepacc collect`. One row per span, its newest content.';
COMMENT ON COLUMN stepacc.otel_spans.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.otel_spans.trace_id IS 'lower-case hex, or whatever text the producer uses';
COMMENT ON COLUMN stepacc.otel_spans.span_id IS 'unique within its trace';
COMMENT ON COLUMN stepacc.otel_spans.parent_span_id IS 'NULL: the span has no parent';
COMMENT ON COLUMN stepacc.otel_spans.name IS 'span name as written';
COMMENT ON COLUMN stepacc.otel_spans.start_time_unix_nano IS 'start, ns since 1970; NULL: not recorded';
COMMENT ON COLUMN stepacc.otel_spans.end_time_unix_nano IS 'end, ns since 1970; NULL: not recorded';
COMMENT ON COLUMN stepacc.otel_spans.status IS 'OK, ERROR or UNSET';
COMMENT ON COLUMN stepacc.otel_spans.status_message IS 'message beside the status, or empty';
COMMENT ON COLUMN stepacc.otel_spans.attributes IS 'attributes as written, {name: value}';
COMMENT ON COLUMN stepacc.otel_spans.events IS 'span events and joined log records, [{name, time_unix_nano, attributes}]';
COMMENT ON COLUMN stepacc.otel_spans.resource IS 'resource attributes, {name: value}';
COMMENT ON COLUMN stepacc.otel_spans.scope_name IS 'name of the instrumentation scope';
COMMENT ON COLUMN stepacc.otel_spans.scope_version IS 'version of the instrumentation scope';
COMMENT ON COLUMN stepacc.otel_spans.first_seen_at IS 'when the span first landed; never changes. Decides the window of a trace without times';
COMMENT ON COLUMN stepacc.otel_spans.ingested_at IS 'when the present content landed';
COMMENT ON COLUMN stepacc.otel_spans.arrival IS 'number of the landing; a new one whenever the content changes. Grows in commit order within a source';

CREATE TABLE stepacc.sessions (
    source TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C",
    window_key TEXT COLLATE "C" NOT NULL,
    first_trace_id TEXT COLLATE "C" NOT NULL,
    start_time_unix_nano BIGINT,
    end_time_unix_nano BIGINT,
    trace_count INTEGER NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (source, session_id)
);

CREATE INDEX sessions_window ON stepacc.sessions (source, window_key, session_id);
COMMENT ON TABLE stepacc.sessions IS 'One row per session; derived from its traces.';
COMMENT ON COLUMN stepacc.sessions.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.sessions.session_id IS 'id of the session';
COMMENT ON COLUMN stepacc.sessions.task_id IS 'task of its first trace';
COMMENT ON COLUMN stepacc.sessions.window_key IS 'home window: that of its first trace, in which the session is scored';
COMMENT ON COLUMN stepacc.sessions.first_trace_id IS 'the trace that starts first, then by id; untimed traces come last';
COMMENT ON COLUMN stepacc.sessions.start_time_unix_nano IS 'start of its first trace, ns since 1970; NULL: not recorded';
COMMENT ON COLUMN stepacc.sessions.end_time_unix_nano IS 'latest end of a span, ns since 1970; NULL: not recorded';
COMMENT ON COLUMN stepacc.sessions.trace_count IS 'traces of the session, in whatever window';
COMMENT ON COLUMN stepacc.sessions.changed_at IS 'when the row last changed';

CREATE TABLE stepacc.spans (
    source TEXT COLLATE "C" NOT NULL,
    trace_id TEXT COLLATE "C" NOT NULL,
    span_id TEXT COLLATE "C" NOT NULL,
    position INTEGER NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    parent_span_id TEXT COLLATE "C",
    start_time_unix_nano BIGINT,
    end_time_unix_nano BIGINT,
    status TEXT COLLATE "C" NOT NULL,
    tool_name TEXT COLLATE "C",
    tool_full_name TEXT COLLATE "C",
    tool_arguments JSONB,
    tool_call_id TEXT COLLATE "C",
    agent_name TEXT COLLATE "C",
    tool_calls JSONB,
    calls_announced BOOLEAN NOT NULL,
    output JSONB,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cost_usd DOUBLE PRECISION,
    CONSTRAINT spans_pkey PRIMARY KEY (source, trace_id, span_id)
);
COMMENT ON TABLE stepacc.spans IS 'Canonical spans (canonical_partition_v1): one vocabulary, whatever convention the producer followed.';
COMMENT ON COLUMN stepacc.spans.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.spans.trace_id IS 'trace of the span';
COMMENT ON COLUMN stepacc.spans.span_id IS 'unique within its trace';
COMMENT ON COLUMN stepacc.spans.position IS 'place among the spans of its trace, from 0';
COMMENT ON COLUMN stepacc.spans.kind IS 'TOOL, AGENT, LLM, CHAIN, RETRIEVER, ... or UNKNOWN';
COMMENT ON COLUMN stepacc.spans.name IS 'span name as written';
COMMENT ON COLUMN stepacc.spans.parent_span_id IS 'NULL: the span has no parent';
COMMENT ON COLUMN stepacc.spans.start_time_unix_nano IS 'start, ns since 1970; NULL: not recorded';
COMMENT ON COLUMN stepacc.spans.end_time_unix_nano IS 'end, ns since 1970; NULL: not recorded';
COMMENT ON COLUMN stepacc.spans.status IS 'OK, ERROR or UNSET';
COMMENT ON COLUMN stepacc.spans.tool_name IS 'bare name of the invoked tool';
COMMENT ON COLUMN stepacc.spans.tool_full_name IS 'tool name as written, where it differs';
COMMENT ON COLUMN stepacc.spans.tool_arguments IS 'arguments of the call';
COMMENT ON COLUMN stepacc.spans.tool_call_id IS 'id that ties the call to the completion that asked for it';
COMMENT ON COLUMN stepacc.spans.agent_name IS 'name of the agent';
COMMENT ON COLUMN stepacc.spans.tool_calls IS 'calls asked for in the completion, [{name, id, arguments, full_name}]; NULL: none';
COMMENT ON COLUMN stepacc.spans.calls_announced IS 'true when the completion asked for tools whose calls were not recorded';
COMMENT ON COLUMN stepacc.spans.output IS 'output of the span';
COMMENT ON COLUMN stepacc.spans.input_tokens IS 'tokens read';
COMMENT ON COLUMN stepacc.spans.output_tokens IS 'tokens written';
COMMENT ON COLUMN stepacc.spans.cost_usd IS 'cost in US dollars, as recorded';

CREATE TABLE stepacc.traces (
    source TEXT COLLATE "C" NOT NULL,
    trace_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C",
    task_id TEXT COLLATE "C",
    window_key TEXT COLLATE "C" NOT NULL,
    start_time_unix_nano BIGINT,
    end_time_unix_nano BIGINT,
    root_span_id TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL,
    settled BOOLEAN NOT NULL,
    span_count INTEGER NOT NULL,
    spans_hash BYTEA NOT NULL,
    gaps JSONB NOT NULL,
    first_ingested_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT traces_pkey PRIMARY KEY (source, trace_id)
);

CREATE INDEX traces_session ON stepacc.traces (source, session_id, trace_id) WHERE session_id IS NOT NULL;

CREATE INDEX traces_window ON stepacc.traces (source, window_key, trace_id);
COMMENT ON TABLE stepacc.traces IS 'One row per trace, in the window in which it starts.';
COMMENT ON COLUMN stepacc.traces.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.traces.trace_id IS 'id of the trace';
COMMENT ON COLUMN stepacc.traces.session_id IS 'session it belongs to; NULL: it makes no session';
COMMENT ON COLUMN stepacc.traces.task_id IS 'task it worked on, for task-level annotations';
COMMENT ON COLUMN stepacc.traces.window_key IS 'Dagster partition key of the window, UTC: 2026-11-30 or 2026-11-30-14:00';
COMMENT ON COLUMN stepacc.traces.start_time_unix_nano IS 'start of the earliest timed span, ns since 1970; NULL: not recorded';
COMMENT ON COLUMN stepacc.traces.end_time_unix_nano IS 'latest end of a span, ns since 1970; NULL: not recorded';
COMMENT ON COLUMN stepacc.traces.root_span_id IS 'root span; NULL: the trace has none';
COMMENT ON COLUMN stepacc.traces.status IS 'status of the root span; UNSET without a root';
COMMENT ON COLUMN stepacc.traces.settled IS 'true once it has a root and every span has its end time';
COMMENT ON COLUMN stepacc.traces.span_count IS 'canonical spans of the trace';
COMMENT ON COLUMN stepacc.traces.spans_hash IS 'SHA-256 of the canonical spans, in order';
COMMENT ON COLUMN stepacc.traces.gaps IS 'what a reader had to assume, [{kind, detail, span_ids}]';
COMMENT ON COLUMN stepacc.traces.first_ingested_at IS 'when the trace was first written';
COMMENT ON COLUMN stepacc.traces.changed_at IS 'when its spans or identity last changed';

CREATE TABLE stepacc.scores (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    source TEXT COLLATE "C" NOT NULL,
    partition_type TEXT COLLATE "C" NOT NULL,
    partition_id TEXT COLLATE "C" NOT NULL,
    session_id TEXT COLLATE "C",
    task_id TEXT COLLATE "C",
    window_key TEXT COLLATE "C" NOT NULL,
    metric TEXT COLLATE "C" NOT NULL,
    metric_version TEXT COLLATE "C" NOT NULL,
    config_hash TEXT COLLATE "C" NOT NULL,
    annotation_id BIGINT,
    reference_hash TEXT COLLATE "C",
    steps_hash TEXT COLLATE "C",
    expected_from TEXT COLLATE "C",
    status TEXT COLLATE "C" NOT NULL,
    code TEXT COLLATE "C",
    reason TEXT COLLATE "C",
    message TEXT COLLATE "C",
    score DOUBLE PRECISION,
    total_steps INTEGER,
    correct_steps INTEGER,
    edit_distance INTEGER,
    dagster_run_id TEXT COLLATE "C",
    evaluated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    confirmed_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT scores_pkey PRIMARY KEY (id),
    CONSTRAINT scores_evaluation_key UNIQUE NULLS NOT DISTINCT (source, partition_type, partition_id, metric, metric_version, config_hash, annotation_id, reference_hash, steps_hash),
    CONSTRAINT scores_partition_type CHECK (partition_type IN ('trace', 'session')),
    CONSTRAINT scores_status CHECK (status IN ('scored', 'failed', 'not_applicable')),
    CONSTRAINT scores_score CHECK ((status = 'scored') = (score IS NOT NULL)),
    CONSTRAINT scores_code CHECK ((status = 'failed') = (code IS NOT NULL)),
    CONSTRAINT scores_reason CHECK ((status = 'not_applicable') = (reason IS NOT NULL)),
    CONSTRAINT scores_annotation_id_fkey FOREIGN KEY(annotation_id) REFERENCES stepacc.annotations (id)
);

CREATE INDEX scores_annotation ON stepacc.scores (annotation_id) WHERE annotation_id IS NOT NULL;

CREATE INDEX scores_window ON stepacc.scores (source, window_key, metric, metric_version, config_hash);
COMMENT ON TABLE stepacc.scores IS 'One row per evaluation: partition, metric version, config, expectation and steps. Making it again adds no row; it moves confirmed_at. Read current_scores, and name a version.';
COMMENT ON COLUMN stepacc.scores.id IS 'id of the evaluation';
COMMENT ON COLUMN stepacc.scores.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.scores.partition_type IS 'trace or session';
COMMENT ON COLUMN stepacc.scores.partition_id IS 'id of the trace or session';
COMMENT ON COLUMN stepacc.scores.session_id IS 'session of the partition';
COMMENT ON COLUMN stepacc.scores.task_id IS 'task of the partition';
COMMENT ON COLUMN stepacc.scores.window_key IS 'Dagster partition key of the window, UTC: 2026-11-30 or 2026-11-30-14:00';
COMMENT ON COLUMN stepacc.scores.metric IS 'name in the metric''s manifest, such as agent.step_accuracy';
COMMENT ON COLUMN stepacc.scores.metric_version IS 'version in the manifest; versions are never compared with each other';
COMMENT ON COLUMN stepacc.scores.config_hash IS 'hash of the config fields that change what a score means';
COMMENT ON COLUMN stepacc.scores.annotation_id IS 'annotation revision that set the expectation; NULL: it came from the config, or there was none';
COMMENT ON COLUMN stepacc.scores.reference_hash IS 'hash of the expectation it was scored against; NULL: there was none';
COMMENT ON COLUMN stepacc.scores.steps_hash IS 'hash of the observed steps; NULL: they could not be read';
COMMENT ON COLUMN stepacc.scores.expected_from IS 'annotations, column or config; NULL: there was none';
COMMENT ON COLUMN stepacc.scores.status IS 'scored, failed or not_applicable';
COMMENT ON COLUMN stepacc.scores.code IS 'why it failed, such as missing_expected_steps';
COMMENT ON COLUMN stepacc.scores.reason IS 'why it is not applicable, such as no_required_kinds';
COMMENT ON COLUMN stepacc.scores.message IS 'the failure as a sentence';
COMMENT ON COLUMN stepacc.scores.score IS '0 to 1, only when scored: a failure is never a 0. Out of range is kept, for a check to show';
COMMENT ON COLUMN stepacc.scores.total_steps IS 'expected steps, a group''s members counted one by one';
COMMENT ON COLUMN stepacc.scores.correct_steps IS 'expected steps that were observed where they were due';
COMMENT ON COLUMN stepacc.scores.edit_distance IS 'insertions, deletions and substitutions; NULL where the method has none';
COMMENT ON COLUMN stepacc.scores.dagster_run_id IS 'run that last confirmed the evaluation';
COMMENT ON COLUMN stepacc.scores.evaluated_at IS 'when this result was written';
COMMENT ON COLUMN stepacc.scores.confirmed_at IS 'when the same evaluation was last made; the newest is current';

CREATE TABLE stepacc.score_metadata (
    score_id BIGINT NOT NULL,
    metadata JSONB NOT NULL,
    CONSTRAINT score_metadata_pkey PRIMARY KEY (score_id),
    CONSTRAINT score_metadata_score_id_fkey FOREIGN KEY(score_id) REFERENCES stepacc.scores (id) ON DELETE CASCADE
);
COMMENT ON TABLE stepacc.score_metadata IS 'The metadata of one evaluation, apart from scores so that those stay narrow.';
COMMENT ON COLUMN stepacc.score_metadata.score_id IS 'the evaluation';
COMMENT ON COLUMN stepacc.score_metadata.metadata IS 'what the metric says of the score: expected and actual steps, the alignment';

CREATE VIEW stepacc.current_scores AS
SELECT s.* FROM stepacc.scores s
WHERE NOT EXISTS (
    SELECT 1 FROM stepacc.scores newer
    WHERE newer.source = s.source
      AND newer.partition_type = s.partition_type
      AND newer.partition_id = s.partition_id
      AND newer.metric = s.metric
      AND newer.metric_version = s.metric_version
      AND newer.config_hash = s.config_hash
      AND (newer.confirmed_at, newer.id) > (s.confirmed_at, s.id)
);

CREATE VIEW stepacc.score_lineage AS
SELECT s.id AS score_id, s.source, s.window_key, s.partition_type, s.partition_id,
       CASE s.partition_type WHEN 'trace' THEN s.partition_id END AS trace_id, s.session_id, s.task_id,
       s.metric, s.metric_version, s.config_hash, s.status, s.code, s.score, s.expected_from,
       s.reference_hash, s.steps_hash,
       a.id AS annotation_id, a.revision AS annotation_revision, a.target_type AS annotation_target_type,
       a.target_id AS annotation_target_id, a.value AS annotation_value, a.author AS annotation_author,
       a.note AS annotation_note, a.origin AS annotation_origin, a.created_at AS annotated_at,
       s.dagster_run_id, s.evaluated_at, s.confirmed_at
FROM stepacc.scores s
LEFT JOIN stepacc.annotations a ON a.id = s.annotation_id;
COMMENT ON VIEW stepacc.current_scores IS 'The evaluation that was confirmed last, per source, partition, metric, version and config. A reader must name a version: scores of two versions do not compare.';
COMMENT ON VIEW stepacc.score_lineage IS 'Every evaluation with the annotation revision that set its expectation, its trace or session and the Dagster run that confirmed it.'
"""


def upgrade() -> None:
    """Create the tables and views."""
    for statement in _STATEMENTS.split(";\n"):
        op.execute(statement)
