"""What was written back to where the traces came from.

Revision ID: 0010
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0010"
down_revision = "0009"

_STATEMENTS = """
CREATE TABLE stepacc.write_backs (
    source TEXT COLLATE "C" NOT NULL,
    destination TEXT COLLATE "C" NOT NULL,
    partition_type TEXT COLLATE "C" NOT NULL,
    partition_id TEXT COLLATE "C" NOT NULL,
    metric TEXT COLLATE "C" NOT NULL,
    metric_version TEXT COLLATE "C" NOT NULL,
    config_hash TEXT COLLATE "C" NOT NULL,
    score_id BIGINT NOT NULL,
    evaluated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    written_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT write_backs_pkey PRIMARY KEY (source, destination, partition_type, partition_id, metric, metric_version, config_hash),
    CONSTRAINT write_backs_partition_type CHECK (partition_type IN ('trace', 'session'))
);
COMMENT ON TABLE stepacc.write_backs IS 'Scores that were written back to where the traces came from, so that each is sent once. Without a row a score is sent again, which makes it anew in its place.';
COMMENT ON COLUMN stepacc.write_backs.source IS 'name of the source: one trace store with its settings';
COMMENT ON COLUMN stepacc.write_backs.destination IS 'kind and address of the server that has the score';
COMMENT ON COLUMN stepacc.write_backs.partition_type IS 'trace or session';
COMMENT ON COLUMN stepacc.write_backs.partition_id IS 'id of the trace or session';
COMMENT ON COLUMN stepacc.write_backs.metric IS 'name of the metric or of a member of its family, as in scores';
COMMENT ON COLUMN stepacc.write_backs.metric_version IS 'version of the metric';
COMMENT ON COLUMN stepacc.write_backs.config_hash IS 'hash of the config fields that change what a score means';
COMMENT ON COLUMN stepacc.write_backs.score_id IS 'id of the evaluation that is there';
COMMENT ON COLUMN stepacc.write_backs.evaluated_at IS 'when the result that is there was written in scores';
COMMENT ON COLUMN stepacc.write_backs.written_at IS 'when it was written back'
"""


def upgrade() -> None:
    """Add the table."""
    for statement in _STATEMENTS.split(";\n"):
        op.execute(statement)
