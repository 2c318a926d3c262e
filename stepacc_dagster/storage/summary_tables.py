"""The table of task summaries: what the repeated runs of a task amount to."""

import sqlalchemy as sa

from stepacc_dagster.storage.columns import integer, jsonb, metadata, moment, source, text
from stepacc_dagster.storage.tables import annotations


def _number(name: str, comment: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double(), comment=comment)


task_summaries = sa.Table(
    "task_summaries",
    metadata,
    sa.Column("id", sa.BigInteger(), sa.Identity(always=True), comment="id of the summary"),
    source(),
    text("partition_type", "trace or session: what a run of the task is here"),
    text("task_id", "the task"),
    text("metric", "name of the metric or of a member of its family, as in scores"),
    text("metric_version", "version of the metric"),
    text("config_hash", "hash of the config fields that change what a score means"),
    sa.Column(
        "annotation_id",
        sa.BigInteger(),
        sa.ForeignKey(annotations.c.id),
        comment="annotation revision that all runs were measured against; NULL: none of them was against any",
    ),
    text("reference_hash", "hash of the expectation; NULL: there was none", null=True),
    integer("n", "runs with a current evaluation, whatever became of it"),
    integer("n_scored", "runs with a score"),
    integer("n_failed", "runs that could not be scored"),
    integer("n_not_applicable", "runs to which the metric does not apply"),
    _number("pass_threshold", "score from which a run passes (up to which, where lower is better)"),
    integer("passes", "scored runs that pass"),
    _number("pass_rate", "passes of the scored runs, 0 to 1; NULL: none is scored"),
    _number("pass_rate_low", "lower end of the Wilson 95 % interval of the pass rate; NULL: none is scored"),
    _number("pass_rate_high", "upper end of the Wilson 95 % interval of the pass rate; NULL: none is scored"),
    jsonb("pass_at_k", "by k: the chance that at least one of k runs passes; null with fewer than k scored"),
    jsonb("pass_hat_k", "by k: the chance that all of k runs pass; null with fewer than k scored"),
    _number("mean", "mean score; NULL: none is scored"),
    jsonb("verdicts", "runs by the verdict in their metadata; empty where the metric gives none"),
    jsonb("unconfirmed_references", "names of references that runs were measured against and nobody confirmed"),
    jsonb("assumptions", "runs by kind of gap in their metadata: what the reader had to assume"),
    moment("changed_at", "when the row last changed"),
    sa.PrimaryKeyConstraint("id"),
    sa.UniqueConstraint(
        "source",
        "task_id",
        "partition_type",
        "metric",
        "metric_version",
        "config_hash",
        "annotation_id",
        "reference_hash",
        name="summary_key",
        postgresql_nulls_not_distinct=True,
    ),
    sa.CheckConstraint("partition_type IN ('trace', 'session')", name="partition_type"),
    comment="The repeated runs of each task, per metric, version, config and reference revision, never across them. "
    "Derived from current_scores.",
)
