"""Configs that scores were made by, and lineage that leads to them.

Revision ID: 0012
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0012"
down_revision = "0011"

_STATEMENTS = """
CREATE TABLE stepacc.metric_configs (
    metric TEXT COLLATE "C" NOT NULL,
    metric_version TEXT COLLATE "C" NOT NULL,
    config_hash TEXT COLLATE "C" NOT NULL,
    row_names TEXT[] COLLATE "C" NOT NULL,
    config JSONB NOT NULL,
    first_seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT metric_configs_pkey PRIMARY KEY (metric, metric_version, config_hash)
);
COMMENT ON TABLE stepacc.metric_configs IS 'Configs that scores were made by. Scores of before this table was there may have none.';
COMMENT ON COLUMN stepacc.metric_configs.metric IS 'name of the metric';
COMMENT ON COLUMN stepacc.metric_configs.metric_version IS 'version of the metric';
COMMENT ON COLUMN stepacc.metric_configs.config_hash IS 'hash of the config, as in scores';
COMMENT ON COLUMN stepacc.metric_configs.row_names IS 'what the metric is called in scores: its own name, or those of the members of its family';
COMMENT ON COLUMN stepacc.metric_configs.config IS 'config fields that change what a score means, and step_policy where the source has one';
COMMENT ON COLUMN stepacc.metric_configs.first_seen_at IS 'when it was first scored by';

CREATE OR REPLACE VIEW stepacc.score_lineage AS
SELECT s.id AS score_id, s.source, s.window_key, s.partition_type, s.partition_id,
       CASE s.partition_type WHEN 'trace' THEN s.partition_id END AS trace_id, s.session_id, s.task_id,
       s.metric, s.metric_version, s.config_hash, s.status, s.code, s.score, s.expected_from,
       s.reference_hash, s.steps_hash,
       a.id AS annotation_id, a.revision AS annotation_revision, a.target_type AS annotation_target_type,
       a.target_id AS annotation_target_id, a.value AS annotation_value, a.author AS annotation_author,
       a.note AS annotation_note, a.origin AS annotation_origin, a.created_at AS annotated_at,
       s.dagster_run_id, s.evaluated_at, s.confirmed_at, s.reason, s.message,
       CASE
           WHEN s.id IS NULL THEN NULL
           WHEN EXISTS (SELECT 1 FROM stepacc.scores newer
    WHERE newer.source = s.source
      AND newer.partition_type = s.partition_type
      AND newer.partition_id = s.partition_id
      AND newer.metric = s.metric
      AND newer.metric_version = s.metric_version
      AND newer.config_hash = s.config_hash
      AND (newer.confirmed_at, newer.id) > (s.confirmed_at, s.id)) THEN 'superseded'
           WHEN s.retired_at IS NOT NULL THEN 'retired'
           ELSE 'current'
       END AS state,
       s.retired_at, a.partition_type AS annotation_partition_type, a.key AS annotation_key,
       a.withdrawn AS annotation_withdrawn,
       NOT a.withdrawn AND a.erased_at IS NULL AND NOT EXISTS (
           SELECT 1 FROM stepacc.annotations later
           WHERE later.source = a.source AND later.target_type = a.target_type
             AND later.target_id = a.target_id AND later.partition_type = a.partition_type
             AND later.key = a.key AND later.revision > a.revision
       ) AS annotation_in_force, a.erased_at AS annotation_erased_at,
       (
           SELECT made.config FROM stepacc.metric_configs made
           WHERE made.metric_version = s.metric_version AND made.config_hash = s.config_hash
             AND s.metric = ANY (made.row_names)
           LIMIT 1
       ) AS config
FROM stepacc.scores s
LEFT JOIN stepacc.annotations a ON a.id = s.annotation_id;

CREATE OR REPLACE VIEW stepacc.annotation_scores AS
SELECT s.id AS score_id, a.source, s.window_key, s.partition_type, s.partition_id,
       CASE s.partition_type WHEN 'trace' THEN s.partition_id END AS trace_id, s.session_id, s.task_id,
       s.metric, s.metric_version, s.config_hash, s.status, s.code, s.score, s.expected_from,
       s.reference_hash, s.steps_hash,
       a.id AS annotation_id, a.revision AS annotation_revision, a.target_type AS annotation_target_type,
       a.target_id AS annotation_target_id, a.value AS annotation_value, a.author AS annotation_author,
       a.note AS annotation_note, a.origin AS annotation_origin, a.created_at AS annotated_at,
       s.dagster_run_id, s.evaluated_at, s.confirmed_at, s.reason, s.message,
       CASE
           WHEN s.id IS NULL THEN NULL
           WHEN EXISTS (SELECT 1 FROM stepacc.scores newer
    WHERE newer.source = s.source
      AND newer.partition_type = s.partition_type
      AND newer.partition_id = s.partition_id
      AND newer.metric = s.metric
      AND newer.metric_version = s.metric_version
      AND newer.config_hash = s.config_hash
      AND (newer.confirmed_at, newer.id) > (s.confirmed_at, s.id)) THEN 'superseded'
           WHEN s.retired_at IS NOT NULL THEN 'retired'
           ELSE 'current'
       END AS state,
       s.retired_at, a.partition_type AS annotation_partition_type, a.key AS annotation_key,
       a.withdrawn AS annotation_withdrawn,
       NOT a.withdrawn AND a.erased_at IS NULL AND NOT EXISTS (
           SELECT 1 FROM stepacc.annotations later
           WHERE later.source = a.source AND later.target_type = a.target_type
             AND later.target_id = a.target_id AND later.partition_type = a.partition_type
             AND later.key = a.key AND later.revision > a.revision
       ) AS annotation_in_force, a.erased_at AS annotation_erased_at,
       (
           SELECT made.config FROM stepacc.metric_configs made
           WHERE made.metric_version = s.metric_version AND made.config_hash = s.config_hash
             AND s.metric = ANY (made.row_names)
           LIMIT 1
       ) AS config
FROM stepacc.annotations a
LEFT JOIN stepacc.scores s ON s.annotation_id = a.id
"""


def upgrade() -> None:
    """Add the table, and the config to both views of lineage."""
    for statement in _STATEMENTS.split(";\n"):
        op.execute(statement)
