"""The tables that say what is to be done: how far each store was followed, and what each window was last worked on.

Numbers, not times, decide: a window is out of date when the number it was worked on is another than the one it has.
"""

import sqlalchemy as sa

from stepacc_dagster.storage.columns import integer, metadata, moment, source, text, window


def _number(name: str, comment: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default=sa.text("0"), comment=comment)


def _later(name: str, comment: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), comment=comment)


def _problem() -> tuple[sa.Column[str], sa.Column[bool]]:
    return (
        text("problem", "why the last attempt failed; NULL: it did not", null=True),
        sa.Column(
            "final",
            sa.Boolean(),
            nullable=False,
            server_default=sa.text("false"),
            comment="true: trying the same again would fail the same way",
        ),
    )


feeds = sa.Table(
    "feeds",
    metadata,
    source(),
    text("reads", "fingerprint of the store's settings; with others, it is followed from the beginning"),
    text("cursor", "what the store was last told to go on from", null=True),
    moment("checked_at", "when the store was last asked for changes"),
    text("annotations_seen", "snapshot of the last look at the annotations; NULL: there was none", null=True),
    sa.PrimaryKeyConstraint("source"),
    comment="How far the changes of each source's store were followed.",
)

windows = sa.Table(
    "windows",
    metadata,
    source(),
    window(),
    _number("change", "number of the last change of its traces in the store that was noticed"),
    _number("ingested_change", "the change up to which it was last ingested"),
    text("reader_version", "code version of the reading it was last ingested with; NULL: never", null=True),
    _number("content", "number of the last change of its traces or sessions here"),
    _later("ingested_at", "when it was last ingested; NULL: never"),
    integer("traces", "traces that start in it, those gone from their store included", null=True),
    *_problem(),
    text("requested", "what the last run asked for was to bring up to date; NULL: none was", null=True),
    integer("requests", "runs asked for to do just that", null=True),
    _later("request_again_at", "when the next may be asked for, if it is still not done"),
    sa.PrimaryKeyConstraint("source", "window_key"),
    comment="One row per window that has, or had, anything in it.",
)

window_annotations = sa.Table(
    "window_annotations",
    metadata,
    source(),
    window(),
    text("key", "annotation key, such as expected_steps"),
    _number("content", "how often annotations of this key that concern the window changed; added to its own content"),
    sa.PrimaryKeyConstraint("source", "window_key", "key"),
    comment="The last change of each window's annotations, by key: a metric reads those of one key.",
)

window_scores = sa.Table(
    "window_scores",
    metadata,
    source(),
    window(),
    text("metric", "name in the metric's manifest"),
    text("metric_version", "version in the manifest"),
    text("config_hash", "hash of the config fields that change what a score means"),
    _number("content", "the window's content, with that of the annotations it reads, that it was last worked on"),
    _later("due_at", "when a trace that was still unsettled settles; NULL: all were"),
    integer("scored", "occurrences with a score", null=True),
    integer("failed", "occurrences that could not be scored", null=True),
    integer("not_applicable", "occurrences to which the metric does not apply", null=True),
    integer("skipped", "occurrences nobody annotated, left out by the source's setting", null=True),
    integer("unsettled", "occurrences left out since they were still going on", null=True),
    _later("scored_at", "when it was last scored; NULL: never"),
    text("dagster_run_id", "the run that did", null=True),
    *_problem(),
    text(
        "rules",
        "fingerprint of the settings that say what is scored and when: kinds, the unannotated, settling",
        null=True,
    ),
    sa.PrimaryKeyConstraint("source", "window_key", "metric", "metric_version", "config_hash"),
    comment="What each window was last scored on, per metric, version and config.",
)
