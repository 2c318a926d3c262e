"""Lineage both ways: from a score to its annotation, and from an annotation to its scores.

Revision ID: 0003
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0003"
down_revision = "0002"

_STATEMENTS = """
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
           WHEN EXISTS (
               SELECT 1 FROM stepacc.scores newer
               WHERE newer.source = s.source
                 AND newer.partition_type = s.partition_type
                 AND newer.partition_id = s.partition_id
                 AND newer.metric = s.metric
                 AND newer.metric_version = s.metric_version
                 AND newer.config_hash = s.config_hash
                 AND (newer.confirmed_at, newer.id) > (s.confirmed_at, s.id)
           ) THEN 'superseded'
           WHEN s.retired_at IS NOT NULL THEN 'retired'
           ELSE 'current'
       END AS state,
       s.retired_at, a.partition_type AS annotation_partition_type, a.key AS annotation_key,
       a.withdrawn AS annotation_withdrawn,
       NOT a.withdrawn AND NOT EXISTS (
           SELECT 1 FROM stepacc.annotations later
           WHERE later.source = a.source AND later.target_type = a.target_type
             AND later.target_id = a.target_id AND later.partition_type = a.partition_type
             AND later.key = a.key AND later.revision > a.revision
       ) AS annotation_in_force
FROM stepacc.scores s
LEFT JOIN stepacc.annotations a ON a.id = s.annotation_id;
COMMENT ON VIEW stepacc.score_lineage IS 'Every evaluation with the annotation revision that set its expectation, its trace or session and the Dagster run that confirmed it. The state is per metric, version and config: name them when you count.';

CREATE VIEW stepacc.annotation_scores AS
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
           WHEN EXISTS (
               SELECT 1 FROM stepacc.scores newer
               WHERE newer.source = s.source
                 AND newer.partition_type = s.partition_type
                 AND newer.partition_id = s.partition_id
                 AND newer.metric = s.metric
                 AND newer.metric_version = s.metric_version
                 AND newer.config_hash = s.config_hash
                 AND (newer.confirmed_at, newer.id) > (s.confirmed_at, s.id)
           ) THEN 'superseded'
           WHEN s.retired_at IS NOT NULL THEN 'retired'
           ELSE 'current'
       END AS state,
       s.retired_at, a.partition_type AS annotation_partition_type, a.key AS annotation_key,
       a.withdrawn AS annotation_withdrawn,
       NOT a.withdrawn AND NOT EXISTS (
           SELECT 1 FROM stepacc.annotations later
           WHERE later.source = a.source AND later.target_type = a.target_type
             AND later.target_id = a.target_id AND later.partition_type = a.partition_type
             AND later.key = a.key AND later.revision > a.revision
       ) AS annotation_in_force
FROM stepacc.annotations a
LEFT JOIN stepacc.scores s ON s.annotation_id = a.id;
COMMENT ON VIEW stepacc.annotation_scores IS 'Every annotation revision with the evaluations that used it, one row for each; a revision that none used has one row without a score. The columns are those of score_lineage.'
"""


def upgrade() -> None:
    """Give the view of lineage its state, and add the way back."""
    for statement in _STATEMENTS.split(";\n"):
        op.execute(statement)
