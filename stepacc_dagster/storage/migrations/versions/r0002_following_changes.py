"""Following changes: what is to be done per window, traces gone from their store, and scores that are retired.

Revision ID: 0002
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0002"
down_revision = "0001"

_STATEMENTS = """
CREATE TABLE stepacc.feeds (
    source TEXT COLLATE "C" NOT NULL,
    reads TEXT COLLATE "C" NOT NULL,
    cursor TEXT COLLATE "C",
    checked_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT feeds_pkey PRIMARY KEY (source)
);
COMMENT ON TABLE stepacc.feeds IS 'How far the changes of each source''s store were followed.';
COMMENT ON COLUMN stepacc.feeds.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.feeds.reads IS 'fingerprint of the store''s settings; with others, it is followed from the beginning';
COMMENT ON COLUMN stepacc.feeds.cursor IS 'what the store was last told to go on from';
COMMENT ON COLUMN stepacc.feeds.checked_at IS 'when the store was last asked for changes';

CREATE TABLE stepacc.windows (
    source TEXT COLLATE "C" NOT NULL,
    window_key TEXT COLLATE "C" NOT NULL,
    change BIGINT DEFAULT 0 NOT NULL,
    ingested_change BIGINT DEFAULT 0 NOT NULL,
    reader_version TEXT COLLATE "C",
    content BIGINT DEFAULT 0 NOT NULL,
    ingested_at TIMESTAMP WITH TIME ZONE,
    traces INTEGER,
    problem TEXT COLLATE "C",
    final BOOLEAN DEFAULT false NOT NULL,
    requested TEXT COLLATE "C",
    requests INTEGER,
    request_again_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT windows_pkey PRIMARY KEY (source, window_key)
);
COMMENT ON TABLE stepacc.windows IS 'One row per window that has, or had, anything in it.';
COMMENT ON COLUMN stepacc.windows.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.windows.window_key IS 'Dagster partition key of the window, UTC: 2026-11-30 or 2026-11-30-14:00';
COMMENT ON COLUMN stepacc.windows.change IS 'number of the last change of its traces in the store that was noticed';
COMMENT ON COLUMN stepacc.windows.ingested_change IS 'the change up to which it was last ingested';
COMMENT ON COLUMN stepacc.windows.reader_version IS 'code version of the reading it was last ingested with; NULL: never';
COMMENT ON COLUMN stepacc.windows.content IS 'number of the last change of its traces, sessions or annotations here';
COMMENT ON COLUMN stepacc.windows.ingested_at IS 'when it was last ingested; NULL: never';
COMMENT ON COLUMN stepacc.windows.traces IS 'traces that start in it, those gone from their store included';
COMMENT ON COLUMN stepacc.windows.problem IS 'why the last attempt failed; NULL: it did not';
COMMENT ON COLUMN stepacc.windows.final IS 'true: trying the same again would fail the same way';
COMMENT ON COLUMN stepacc.windows.requested IS 'what the last run asked for was to bring up to date; NULL: none was';
COMMENT ON COLUMN stepacc.windows.requests IS 'runs asked for to do just that';
COMMENT ON COLUMN stepacc.windows.request_again_at IS 'when the next may be asked for, if it is still not done';

CREATE TABLE stepacc.window_scores (
    source TEXT COLLATE "C" NOT NULL,
    window_key TEXT COLLATE "C" NOT NULL,
    metric TEXT COLLATE "C" NOT NULL,
    metric_version TEXT COLLATE "C" NOT NULL,
    config_hash TEXT COLLATE "C" NOT NULL,
    content BIGINT DEFAULT 0 NOT NULL,
    due_at TIMESTAMP WITH TIME ZONE,
    scored INTEGER,
    failed INTEGER,
    not_applicable INTEGER,
    skipped INTEGER,
    unsettled INTEGER,
    scored_at TIMESTAMP WITH TIME ZONE,
    dagster_run_id TEXT COLLATE "C",
    problem TEXT COLLATE "C",
    final BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT window_scores_pkey PRIMARY KEY (source, window_key, metric, metric_version, config_hash)
);
COMMENT ON TABLE stepacc.window_scores IS 'What each window was last scored on, per metric, version and config.';
COMMENT ON COLUMN stepacc.window_scores.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.window_scores.window_key IS 'Dagster partition key of the window, UTC: 2026-11-30 or 2026-11-30-14:00';
COMMENT ON COLUMN stepacc.window_scores.metric IS 'name in the metric''s manifest';
COMMENT ON COLUMN stepacc.window_scores.metric_version IS 'version in the manifest';
COMMENT ON COLUMN stepacc.window_scores.config_hash IS 'hash of the config fields that change what a score means';
COMMENT ON COLUMN stepacc.window_scores.content IS 'the window''s content it was last worked on';
COMMENT ON COLUMN stepacc.window_scores.due_at IS 'when a trace that was still unsettled settles; NULL: all were';
COMMENT ON COLUMN stepacc.window_scores.scored IS 'occurrences with a score';
COMMENT ON COLUMN stepacc.window_scores.failed IS 'occurrences that could not be scored';
COMMENT ON COLUMN stepacc.window_scores.not_applicable IS 'occurrences to which the metric does not apply';
COMMENT ON COLUMN stepacc.window_scores.skipped IS 'occurrences nobody annotated, left out by the source''s setting';
COMMENT ON COLUMN stepacc.window_scores.unsettled IS 'occurrences left out since they were still going on';
COMMENT ON COLUMN stepacc.window_scores.scored_at IS 'when it was last scored; NULL: never';
COMMENT ON COLUMN stepacc.window_scores.dagster_run_id IS 'the run that did';
COMMENT ON COLUMN stepacc.window_scores.problem IS 'why the last attempt failed; NULL: it did not';
COMMENT ON COLUMN stepacc.window_scores.final IS 'true: trying the same again would fail the same way';

ALTER TABLE stepacc.traces ADD COLUMN gone_upstream_at TIMESTAMP WITH TIME ZONE;
COMMENT ON COLUMN stepacc.traces.gone_upstream_at IS 'when its store was found to have it no longer, such as by retention; its content here stays';
COMMENT ON COLUMN stepacc.traces.settled IS 'true once it has a root that has ended; of a trace without any end times the root is enough';
CREATE INDEX traces_task ON stepacc.traces (source, task_id) WHERE task_id IS NOT NULL;

ALTER TABLE stepacc.scores ADD COLUMN retired_at TIMESTAMP WITH TIME ZONE;
COMMENT ON COLUMN stepacc.scores.retired_at IS 'when it ceased to be current with none in its place: what it was measured against was withdrawn from a source that skips what nobody annotated, or its session is no more';

DROP VIEW stepacc.current_scores;
CREATE VIEW stepacc.current_scores AS
SELECT s.* FROM stepacc.scores s
WHERE s.retired_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM stepacc.scores newer
    WHERE newer.source = s.source
      AND newer.partition_type = s.partition_type
      AND newer.partition_id = s.partition_id
      AND newer.metric = s.metric
      AND newer.metric_version = s.metric_version
      AND newer.config_hash = s.config_hash
      AND (newer.confirmed_at, newer.id) > (s.confirmed_at, s.id)
);
COMMENT ON VIEW stepacc.current_scores IS 'The evaluation that was confirmed last, per source, partition, metric, version and config, unless it was retired. A reader must name a version: scores of two versions do not compare.';

INSERT INTO stepacc.windows (source, window_key, change)
SELECT DISTINCT source, window_key, 1 FROM stepacc.traces
UNION SELECT DISTINCT source, window_key, 1 FROM stepacc.sessions
"""

# Whoever annotates, by whatever tool, marks the windows in the same transaction: what is committed is never missed.
_ANNOTATED = """
CREATE FUNCTION stepacc.annotated() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    INSERT INTO stepacc.windows AS present (source, window_key, content)
    SELECT source, window_key, 1 FROM (
        SELECT said.source, occurrence.window_key FROM said JOIN stepacc.traces occurrence
            ON occurrence.source = said.source AND occurrence.trace_id = said.target_id
            WHERE said.target_type = 'trace'
        UNION
        SELECT said.source, occurrence.window_key FROM said JOIN stepacc.sessions occurrence
            ON occurrence.source = said.source AND occurrence.session_id = said.target_id
            WHERE said.target_type = 'session'
        UNION
        SELECT said.source, occurrence.window_key FROM said JOIN stepacc.traces occurrence
            ON occurrence.source = said.source AND occurrence.task_id = said.target_id
            WHERE said.target_type = 'task' AND said.partition_type = 'trace'
        UNION
        SELECT said.source, home.window_key FROM said JOIN stepacc.traces occurrence
            ON occurrence.source = said.source AND occurrence.task_id = said.target_id
            JOIN stepacc.sessions home ON home.source = said.source AND home.session_id = occurrence.session_id
            WHERE said.target_type = 'task' AND said.partition_type = 'session'
    ) concerned ORDER BY source, window_key
    ON CONFLICT (source, window_key) DO UPDATE SET content = present.content + 1;
    RETURN NULL;
END $$
"""
_TRIGGER = """
CREATE TRIGGER annotated AFTER INSERT ON stepacc.annotations
REFERENCING NEW TABLE AS said FOR EACH STATEMENT EXECUTE FUNCTION stepacc.annotated()
"""


def upgrade() -> None:
    """Create the tables, and mark what is there as not yet ingested."""
    for statement in [*_STATEMENTS.split(";\n"), _ANNOTATED, _TRIGGER]:
        op.execute(statement)
