"""Lineage tells whether an annotation was erased.

Revision ID: 0005
"""

from alembic import op

revision = "0005"
down_revision = "0004"

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
       NOT a.withdrawn AND a.erased_at IS NULL AND NOT EXISTS (
           SELECT 1 FROM stepacc.annotations later
           WHERE later.source = a.source AND later.target_type = a.target_type
             AND later.target_id = a.target_id AND later.partition_type = a.partition_type
             AND later.key = a.key AND later.revision > a.revision
       ) AS annotation_in_force, a.erased_at AS annotation_erased_at
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
       NOT a.withdrawn AND a.erased_at IS NULL AND NOT EXISTS (
           SELECT 1 FROM stepacc.annotations later
           WHERE later.source = a.source AND later.target_type = a.target_type
             AND later.target_id = a.target_id AND later.partition_type = a.partition_type
             AND later.key = a.key AND later.revision > a.revision
       ) AS annotation_in_force, a.erased_at AS annotation_erased_at
FROM stepacc.annotations a
LEFT JOIN stepacc.scores s ON s.annotation_id = a.id
"""


def upgrade() -> None:
    """Let both views of lineage tell it."""
    for statement in _STATEMENTS.split(";\n"):
        op.execute(statement)
