"""Scores of a metric family, shown together: its members are rows of their own in the tables."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from stepacc_core.metrics import Manifest, registered_metrics
from stepacc_dagster.storage.lineage import Score, ScoreLineage


class _Named(Protocol):
    """A row of the score table, as far as families are concerned."""

    @property
    def metric(self) -> str: ...


def shown_metric(score: _Named) -> str:
    """Return the name a score is shown under: that of its family's metric, where it is of a member of one."""
    manifest = _families().get(score.metric)
    return manifest.name if manifest else score.metric


def stands_for_others(score: _Named) -> bool:
    """Tell whether a score is shown by itself: it is its family's headline, or of a metric without a family."""
    manifest = _families().get(score.metric)
    return manifest is None or manifest.headline == score.metric


def together(evaluations: Iterable[ScoreLineage]) -> list[tuple[ScoreLineage, Sequence[Score]]]:
    """Return the evaluations that are shown by themselves, each with the scores of its other members.

    Members belong together when they were measured against the same of the same steps; where the headline is missing,
    each is shown by itself.
    """
    groups: dict[tuple[object, ...], list[ScoreLineage]] = {}
    for each in evaluations:
        groups.setdefault(_evaluation(each.score), []).append(each)
    found: list[tuple[ScoreLineage, Sequence[Score]]] = []
    for group in groups.values():
        shown = [each for each in group if stands_for_others(each.score)] or group
        others = [each.score for each in group if each not in shown]
        found += [(each, others if place == 0 else ()) for place, each in enumerate(shown)]
    return found


def member(score: Score) -> str:
    """Return the last part of a member's name: `f1` of `trajectory_match.f1`."""
    return score.metric.rpartition(".")[2]


def _evaluation(score: Score) -> tuple[object, ...]:
    made = (shown_metric(score), score.metric_version, score.config_hash)
    of = (score.partition_type, score.partition_id)
    return (*made, *of, score.dagster_run_id, score.reference_hash, score.steps_hash)


@lru_cache(maxsize=1)
def _families() -> Mapping[str, Manifest]:
    """Return by member's name the manifest of its metric, the newest where several versions have it."""
    return {name: metric.manifest for metric in registered_metrics() for name in metric.manifest.family}
