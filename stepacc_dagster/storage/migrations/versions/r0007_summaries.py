"""Task summaries, and changes of annotations counted by their key.

What changed before stays counted with the window itself: the sum of both is what a window is scored on.

Revision ID: 0007
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0007"
down_revision = "0006"

_STATEMENTS = """
CREATE TABLE stepacc.window_annotations (
    source TEXT COLLATE "C" NOT NULL,
    window_key TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    content BIGINT DEFAULT 0 NOT NULL,
    CONSTRAINT window_annotations_pkey PRIMARY KEY (source, window_key, key)
);
COMMENT ON TABLE stepacc.window_annotations IS 'The last change of each window''s annotations, by key: a metric reads those of one key.';
COMMENT ON COLUMN stepacc.window_annotations.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.window_annotations.window_key IS 'Dagster partition key of the window, UTC: 2026-11-30 or 2026-11-30-14:00';
COMMENT ON COLUMN stepacc.window_annotations.key IS 'annotation key, such as expected_steps';
COMMENT ON COLUMN stepacc.window_annotations.content IS 'how often annotations of this key that concern the window changed; added to its own content';
CREATE TABLE stepacc.task_summaries (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    source TEXT COLLATE "C" NOT NULL,
    partition_type TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C" NOT NULL,
    metric TEXT COLLATE "C" NOT NULL,
    metric_version TEXT COLLATE "C" NOT NULL,
    config_hash TEXT COLLATE "C" NOT NULL,
    annotation_id BIGINT,
    reference_hash TEXT COLLATE "C",
    n INTEGER NOT NULL,
    n_scored INTEGER NOT NULL,
    n_failed INTEGER NOT NULL,
    n_not_applicable INTEGER NOT NULL,
    pass_threshold DOUBLE PRECISION,
    passes INTEGER NOT NULL,
    pass_rate DOUBLE PRECISION,
    pass_rate_low DOUBLE PRECISION,
    pass_rate_high DOUBLE PRECISION,
    pass_at_k JSONB NOT NULL,
    pass_hat_k JSONB NOT NULL,
    mean DOUBLE PRECISION,
    verdicts JSONB NOT NULL,
    unconfirmed_references JSONB NOT NULL,
    assumptions JSONB NOT NULL,
    changed_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT task_summaries_pkey PRIMARY KEY (id),
    CONSTRAINT task_summaries_summary_key UNIQUE NULLS NOT DISTINCT (source, task_id, partition_type, metric, metric_version, config_hash, annotation_id, reference_hash),
    CONSTRAINT task_summaries_partition_type CHECK (partition_type IN ('trace', 'session')),
    CONSTRAINT task_summaries_annotation_id_fkey FOREIGN KEY(annotation_id) REFERENCES stepacc.annotations (id)
);
COMMENT ON TABLE stepacc.task_summaries IS 'The repeated runs of each task, per metric, version, config and reference revision, never across them. Derived from current_scores.';
COMMENT ON COLUMN stepacc.task_summaries.id IS 'id of the summary';
COMMENT ON COLUMN stepacc.task_summaries.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.task_summaries.partition_type IS 'trace or session: what a run of the task is here';
COMMENT ON COLUMN stepacc.task_summaries.task_id IS 'the task';
COMMENT ON COLUMN stepacc.task_summaries.metric IS 'name of the metric or of a member of its family, as in scores';
COMMENT ON COLUMN stepacc.task_summaries.metric_version IS 'version of the metric';
COMMENT ON COLUMN stepacc.task_summaries.config_hash IS 'hash of the config fields that change what a score means';
COMMENT ON COLUMN stepacc.task_summaries.annotation_id IS 'annotation revision that all runs were measured against; NULL: none of them was against any';
COMMENT ON COLUMN stepacc.task_summaries.reference_hash IS 'hash of the expectation; NULL: there was none';
COMMENT ON COLUMN stepacc.task_summaries.n IS 'runs with a current evaluation, whatever became of it';
COMMENT ON COLUMN stepacc.task_summaries.n_scored IS 'runs with a score';
COMMENT ON COLUMN stepacc.task_summaries.n_failed IS 'runs that could not be scored';
COMMENT ON COLUMN stepacc.task_summaries.n_not_applicable IS 'runs to which the metric does not apply';
COMMENT ON COLUMN stepacc.task_summaries.pass_threshold IS 'score from which a run passes (up to which, where lower is better)';
COMMENT ON COLUMN stepacc.task_summaries.passes IS 'scored runs that pass';
COMMENT ON COLUMN stepacc.task_summaries.pass_rate IS 'passes of the scored runs, 0 to 1; NULL: none is scored';
COMMENT ON COLUMN stepacc.task_summaries.pass_rate_low IS 'lower end of the Wilson 95 % interval of the pass rate; NULL: none is scored';
COMMENT ON COLUMN stepacc.task_summaries.pass_rate_high IS 'upper end of the Wilson 95 % interval of the pass rate; NULL: none is scored';
COMMENT ON COLUMN stepacc.task_summaries.pass_at_k IS 'by k: the chance that at least one of k runs passes; null with fewer than k scored';
COMMENT ON COLUMN stepacc.task_summaries.pass_hat_k IS 'by k: the chance that all of k runs pass; null with fewer than k scored';
COMMENT ON COLUMN stepacc.task_summaries.mean IS 'mean score; NULL: none is scored';
COMMENT ON COLUMN stepacc.task_summaries.verdicts IS 'runs by the verdict in their metadata; empty where the metric gives none';
COMMENT ON COLUMN stepacc.task_summaries.unconfirmed_references IS 'names of references that runs were measured against and nobody confirmed';
COMMENT ON COLUMN stepacc.task_summaries.assumptions IS 'runs by kind of gap in their metadata: what the reader had to assume';
COMMENT ON COLUMN stepacc.task_summaries.changed_at IS 'when the row last changed';
COMMENT ON COLUMN stepacc.windows.content IS 'number of the last change of its traces or sessions here';
COMMENT ON COLUMN stepacc.window_scores.content IS 'the window''s content, with that of the annotations it reads, that it was last worked on';
CREATE INDEX scores_task ON stepacc.scores (source, task_id) WHERE task_id IS NOT NULL
"""


def upgrade() -> None:
    """Add the two tables, and the index by which the runs of tasks are found."""
    for statement in _STATEMENTS.split(";\n"):
        op.execute(statement)
