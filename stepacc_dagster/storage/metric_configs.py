"""The configs that scores were made by, each once: what a score's `config_hash` stands for."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from stepacc_dagster.storage.columns import jsonb, metadata, moment, text

metric_configs = sa.Table(
    "metric_configs",
    metadata,
    text("metric", "name of the metric"),
    text("metric_version", "version of the metric"),
    text("config_hash", "hash of the config, as in scores"),
    sa.Column(
        "row_names",
        sa.ARRAY(sa.Text(collation="C")),
        nullable=False,
        comment="what the metric is called in scores: its own name, or those of the members of its family",
    ),
    jsonb("config", "config fields that change what a score means, and step_policy where the source has one"),
    moment("first_seen_at", "when it was first scored by"),
    sa.PrimaryKeyConstraint("metric", "metric_version", "config_hash"),
    comment="Configs that scores were made by. Scores of before this table was there may have none.",
)


def note_config(  # noqa: PLR0913 (a row)
    conn: sa.Connection,
    *,
    metric: str,
    metric_version: str,
    config_hash: str,
    row_names: Sequence[str],
    config: Mapping[str, Any],
) -> None:
    """Keep a config, unless it is known; its hash tells.

    In a transaction that is soon over: whoever notes the same config for the first time waits for its end.
    """
    row = {
        "metric": metric,
        "metric_version": metric_version,
        "config_hash": config_hash,
        "row_names": list(row_names),
        "config": dict(config),
    }
    conn.execute(insert(metric_configs).values(row).on_conflict_do_nothing())
