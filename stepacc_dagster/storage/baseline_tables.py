"""The tables of baselines: scores that a gate compares later ones with, kept as they were."""

import sqlalchemy as sa

from stepacc_dagster.storage.columns import integer, metadata, moment, source, text

baselines = sa.Table(
    "baselines",
    metadata,
    sa.Column("id", sa.BigInteger(), sa.Identity(always=True), comment="id of the revision"),
    source(),
    text("name", "what people call it"),
    integer("revision", "1, 2, 3, ... per source and name; the newest is in force"),
    text("metric", "name of the metric or of a member of its family, as in scores"),
    text("metric_version", "version of the metric"),
    text("config_hash", "hash of the config fields that change what a score means"),
    text("partition_type", "trace or session"),
    text("first_window", "key of the first window it was made of; empty: the oldest there was"),
    text("last_window", "key of the last, included; ~: the newest there was"),
    integer("scored", "scores in it"),
    sa.Column("mean", sa.Double(), nullable=False, comment="their mean"),
    text("author", "who set it"),
    text("note", "why"),
    moment("created_at", "when it was set"),
    sa.PrimaryKeyConstraint("id"),
    sa.UniqueConstraint("source", "name", "revision", name="revision_key"),
    sa.CheckConstraint("partition_type IN ('trace', 'session')", name="partition_type"),
    comment="Scores that a gate compares later ones with: of one metric, version and config each. Setting one anew "
    "adds a revision.",
)

baseline_scores = sa.Table(
    "baseline_scores",
    metadata,
    sa.Column(
        "baseline_id",
        sa.BigInteger(),
        sa.ForeignKey(baselines.c.id, ondelete="CASCADE"),
        autoincrement=False,
        comment="the baseline",
    ),
    text("partition_id", "id of the trace or session"),
    text("task_id", "task it worked on", null=True),
    sa.Column("score", sa.Double(), nullable=False, comment="its score when the baseline was set"),
    text("reference_hash", "hash of the expectation it was measured against; NULL: there was none", null=True),
    sa.Column("annotation_id", sa.BigInteger(), comment="annotation revision that set the expectation"),
    sa.Column("score_id", sa.BigInteger(), nullable=False, comment="id of the evaluation in scores"),
    sa.PrimaryKeyConstraint("baseline_id", "partition_id"),
    sa.Index("baseline_scores_score", "score_id"),
    comment="The scores of each baseline, as they were when it was set: enough to compare them run by run and task by "
    "task.",
)
