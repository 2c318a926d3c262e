"""Baselines: scores that a gate compares later ones with.

Revision ID: 0008
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0008"
down_revision = "0007"

_STATEMENTS = """
CREATE TABLE stepacc.baselines (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    source TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    revision INTEGER NOT NULL,
    metric TEXT COLLATE "C" NOT NULL,
    metric_version TEXT COLLATE "C" NOT NULL,
    config_hash TEXT COLLATE "C" NOT NULL,
    partition_type TEXT COLLATE "C" NOT NULL,
    first_window TEXT COLLATE "C" NOT NULL,
    last_window TEXT COLLATE "C" NOT NULL,
    scored INTEGER NOT NULL,
    mean DOUBLE PRECISION NOT NULL,
    author TEXT COLLATE "C" NOT NULL,
    note TEXT COLLATE "C" NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT baselines_pkey PRIMARY KEY (id),
    CONSTRAINT baselines_revision_key UNIQUE (source, name, revision),
    CONSTRAINT baselines_partition_type CHECK (partition_type IN ('trace', 'session'))
);
COMMENT ON TABLE stepacc.baselines IS 'Scores that a gate compares later ones with: of one metric, version and config each. Setting one anew adds a revision.';
COMMENT ON COLUMN stepacc.baselines.id IS 'id of the revision';
COMMENT ON COLUMN stepacc.baselines.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.baselines.name IS 'what people call it';
COMMENT ON COLUMN stepacc.baselines.revision IS '1, 2, 3, ... per source and name; the newest is in force';
COMMENT ON COLUMN stepacc.baselines.metric IS 'name of the metric or of a member of its family, as in scores';
COMMENT ON COLUMN stepacc.baselines.metric_version IS 'version of the metric';
COMMENT ON COLUMN stepacc.baselines.config_hash IS 'hash of the config fields that change what a score means';
COMMENT ON COLUMN stepacc.baselines.partition_type IS 'trace or session';
COMMENT ON COLUMN stepacc.baselines.first_window IS 'key of the first window it was made of; empty: the oldest there was';
COMMENT ON COLUMN stepacc.baselines.last_window IS 'key of the last, included; ~: the newest there was';
COMMENT ON COLUMN stepacc.baselines.scored IS 'scores in it';
COMMENT ON COLUMN stepacc.baselines.mean IS 'their mean';
COMMENT ON COLUMN stepacc.baselines.author IS 'who set it';
COMMENT ON COLUMN stepacc.baselines.note IS 'why';
COMMENT ON COLUMN stepacc.baselines.created_at IS 'when it was set';
CREATE TABLE stepacc.baseline_scores (
    baseline_id BIGINT NOT NULL,
    partition_id TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C",
    score DOUBLE PRECISION NOT NULL,
    reference_hash TEXT COLLATE "C",
    annotation_id BIGINT,
    score_id BIGINT NOT NULL,
    CONSTRAINT baseline_scores_pkey PRIMARY KEY (baseline_id, partition_id),
    CONSTRAINT baseline_scores_baseline_id_fkey FOREIGN KEY(baseline_id) REFERENCES stepacc.baselines (id) ON DELETE CASCADE
);
CREATE INDEX baseline_scores_score ON stepacc.baseline_scores (score_id);
COMMENT ON TABLE stepacc.baseline_scores IS 'The scores of each baseline, as they were when it was set: enough to compare them run by run and task by task.';
COMMENT ON COLUMN stepacc.baseline_scores.baseline_id IS 'the baseline';
COMMENT ON COLUMN stepacc.baseline_scores.partition_id IS 'id of the trace or session';
COMMENT ON COLUMN stepacc.baseline_scores.task_id IS 'task it worked on';
COMMENT ON COLUMN stepacc.baseline_scores.score IS 'its score when the baseline was set';
COMMENT ON COLUMN stepacc.baseline_scores.reference_hash IS 'hash of the expectation it was measured against; NULL: there was none';
COMMENT ON COLUMN stepacc.baseline_scores.annotation_id IS 'annotation revision that set the expectation';
COMMENT ON COLUMN stepacc.baseline_scores.score_id IS 'id of the evaluation in scores'
"""


def upgrade() -> None:
    """Add the two tables."""
    for statement in _STATEMENTS.split(";\n"):
        op.execute(statement)
