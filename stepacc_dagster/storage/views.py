"""The views of the schema `stepacc`: what reports and people read."""

import sqlalchemy as sa

from stepacc_dagster.storage.columns import SCHEMA
from stepacc_dagster.storage.tables import scores

_NEWER = """SELECT 1 FROM stepacc.scores newer
            WHERE newer.source = s.source
              AND newer.partition_type = s.partition_type
              AND newer.partition_id = s.partition_id
              AND newer.metric = s.metric
              AND newer.metric_version = s.metric_version
              AND newer.config_hash = s.config_hash
              AND (newer.confirmed_at, newer.id) > (s.confirmed_at, s.id)"""
"""A later evaluation than `s` of the same partition by the same metric, version and config."""

_LINEAGE = """s.id AS score_id, {left}.source, s.window_key, s.partition_type, s.partition_id,
               CASE s.partition_type WHEN 'trace' THEN s.partition_id END AS trace_id, s.session_id, s.task_id,
               s.metric, s.metric_version, s.config_hash, s.status, s.code, s.score, s.expected_from,
               s.reference_hash, s.steps_hash,
               a.id AS annotation_id, a.revision AS annotation_revision, a.target_type AS annotation_target_type,
               a.target_id AS annotation_target_id, a.value AS annotation_value, a.author AS annotation_author,
               a.note AS annotation_note, a.origin AS annotation_origin, a.created_at AS annotated_at,
               s.dagster_run_id, s.evaluated_at, s.confirmed_at, s.reason, s.message,
               CASE
                   WHEN s.id IS NULL THEN NULL
                   WHEN EXISTS ({newer}) THEN 'superseded'
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
               ) AS config"""
"""Columns of the views of lineage: `s` is a score, `a` an annotation, `left` the one of them that is always there."""

VIEWS: dict[str, str] = {
    # NOT EXISTS rather than DISTINCT ON, so that a filter on any column reaches the index under it.
    "current_scores": f"""
        SELECT s.* FROM stepacc.scores s
        WHERE s.retired_at IS NULL AND NOT EXISTS (
            {_NEWER}
        )
    """,  # noqa: S608 (parts of this module)
    "score_lineage": f"""
        SELECT {_LINEAGE.format(left="s", newer=_NEWER)}
        FROM stepacc.scores s
        LEFT JOIN stepacc.annotations a ON a.id = s.annotation_id
    """,  # noqa: S608 (parts of this module)
    "annotation_scores": f"""
        SELECT {_LINEAGE.format(left="a", newer=_NEWER)}
        FROM stepacc.annotations a
        LEFT JOIN stepacc.scores s ON s.annotation_id = a.id
    """,  # noqa: S608 (parts of this module)
}
"""The query of each view, by name."""

VIEW_COMMENTS: dict[str, str] = {
    "current_scores": "The evaluation that was confirmed last, per source, partition, metric, version and config, "
    "unless it was retired. "
    "A reader must name a version: scores of two versions do not compare.",
    "score_lineage": "Every evaluation with the annotation revision that set its expectation, its trace or session "
    "and the Dagster run that confirmed it. The state is per metric, version and config: name them when you count.",
    "annotation_scores": "Every annotation revision with the evaluations that used it, one row for each; a revision "
    "that none used has one row without a score. The columns are those of score_lineage.",
}

current_scores = sa.Table(
    "current_scores",
    sa.MetaData(schema=SCHEMA),  # of its own: the migrations own the view, and create_all must not make a table of it
    *(sa.Column(column.name, column.type) for column in scores.columns),
)
