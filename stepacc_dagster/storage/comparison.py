"""Current scores of several versions and configs of a metric, side by side and never mixed."""

from dataclasses import dataclass

import sqlalchemy as sa

_COMPARED = sa.text("""
    WITH chosen AS (
        SELECT partition_type, partition_id, metric_version, config_hash, status, score FROM stepacc.current_scores
        WHERE source = :source AND metric = :metric AND window_key BETWEEN :first AND :last
    ),
    reference AS (SELECT * FROM chosen WHERE metric_version = :metric_version AND config_hash = :config_hash)
    SELECT c.metric_version, c.config_hash, count(*) FILTER (WHERE c.status = 'scored') AS scored,
           count(*) FILTER (WHERE c.status = 'failed') AS failed,
           count(*) FILTER (WHERE c.status = 'not_applicable') AS not_applicable, avg(c.score) AS mean,
           count(r.score) FILTER (WHERE c.score IS NOT NULL) AS pairs, avg(r.score - c.score) AS change,
           count(*) FILTER (WHERE r.score > c.score) AS higher, count(*) FILTER (WHERE r.score < c.score) AS lower
    FROM chosen c LEFT JOIN reference r USING (partition_type, partition_id)
    GROUP BY c.metric_version, c.config_hash
    ORDER BY c.metric_version = :metric_version AND c.config_hash = :config_hash, c.metric_version, c.config_hash
""")


@dataclass(frozen=True, slots=True)
class VersionScores:
    """The current scores of one version and config of a metric.

    Attributes:
        metric_version: the version.
        config_hash: the config.
        scored: occurrences with a score.
        failed: occurrences that could not be scored.
        not_applicable: occurrences to which the metric does not apply.
        mean: mean score; None where nothing is scored.
        pairs: occurrences that have a score by this version and by the one compared with.
        change: mean of the other score less this one, over the pairs; None without any.
        higher: pairs in which the other score is higher.
        lower: pairs in which it is lower.
    """

    metric_version: str
    config_hash: str
    scored: int
    failed: int
    not_applicable: int
    mean: float | None
    pairs: int
    change: float | None
    higher: int
    lower: int


def compare_versions(  # noqa: PLR0913 (what is compared)
    conn: sa.Connection,
    source: str,
    metric: str,
    *,
    metric_version: str,
    config_hash: str,
    first: str,
    last: str,
) -> list[VersionScores]:
    """Return the current scores of each version and config in the windows from `first` to `last`.

    Each is compared, occurrence by occurrence, with the version and config named, which comes last.
    """
    names = {
        "source": source,
        "metric": metric,
        "metric_version": metric_version,
        "config_hash": config_hash,
        "first": first,
        "last": last,
    }
    return [VersionScores(**row) for row in conn.execute(_COMPARED, names).mappings()]
