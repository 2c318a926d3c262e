"""Current scores of several versions and configs of a metric, side by side and never mixed.

Neither are traces and sessions: a mean over both would say nothing of either.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from stepacc_core.comparison.observations import Counts, Observation, mean
from stepacc_core.comparison.pairing import pair_occurrences
from stepacc_core.model import PartitionType

_COMPARED = sa.text("""
    SELECT metric_version, config_hash, partition_type, partition_id, status, score, reference_hash
    FROM stepacc.current_scores
    WHERE source = :source AND metric = :metric AND window_key BETWEEN :first AND :last
""")


@dataclass(frozen=True, slots=True)
class VersionScores:
    """The current scores of the traces, or of the sessions, by one version and config of a metric.

    Attributes:
        partition_type: of what the scores are.
        metric_version: the version.
        config_hash: the config.
        scored: occurrences with a score.
        failed: occurrences that could not be scored.
        not_applicable: occurrences to which the metric does not apply.
        mean: mean score; None where nothing is scored.
        pairs: occurrences that have a score by this version and by the one compared with, against the same expectation.
        change: mean of the other score less this one, over the pairs; None without any.
        higher: pairs in which the other score is higher.
        lower: pairs in which it is lower.
        other_reference: occurrences that both scored, but against different expectations; no pairs.
    """

    partition_type: PartitionType
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
    other_reference: int


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
    """Return the current scores of each version and config in the windows `first` to `last`, sessions after traces.

    Each is compared, occurrence by occurrence, with the version and config named, which comes last of its kind.
    """
    named = (metric_version, config_hash)
    by_version: defaultdict[tuple[PartitionType, str, str], list[Observation]] = defaultdict(list)
    rows = conn.execute(_COMPARED, {"source": source, "metric": metric, "first": first, "last": last})
    for version, config, kind, ident, status, score, reference in rows:
        by_version[kind, version, config].append(Observation(kind, ident, status, score, reference_hash=reference))
    return [
        _compared(kind, version, config, by_version[kind, version, config], by_version.get((kind, *named), ()))
        for kind, version, config in sorted(by_version, key=lambda key: (key[0] == "session", key[1:] == named, key))
    ]


def _compared(
    partition_type: PartitionType,
    metric_version: str,
    config_hash: str,
    own: Sequence[Observation],
    other: Sequence[Observation],
) -> VersionScores:
    counts, pairing = Counts.of(own), pair_occurrences(own, other)
    changes = [pair.change for pair in pairing.pairs]
    return VersionScores(
        partition_type=partition_type,
        metric_version=metric_version,
        config_hash=config_hash,
        scored=counts.scored,
        failed=counts.failed,
        not_applicable=counts.not_applicable,
        mean=counts.mean,
        pairs=len(changes),
        change=mean(changes) if changes else None,
        higher=sum(change > 0 for change in changes),
        lower=sum(change < 0 for change in changes),
        other_reference=len(pairing.other_reference),
    )
