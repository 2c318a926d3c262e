"""The metrics of a source, resolved: each with its config, and the names that its assets and rows have."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from stepacc_core.errors import ConfigError, UnknownMetricError
from stepacc_core.metrics import Metric, build_config, config_hash, get_metric
from stepacc_core.metrics.base import deciding_settings
from stepacc_core.metrics.manifest import AnnotationKey
from stepacc_dagster.sources import MetricChoice, Source
from stepacc_dagster.storage.summaries import SummarisedMetric

_IN_LIST = {"metric": "name", "metric_version": "version", "config": "config"}
"""Settings of a metric, as an error names them, and what they are called in the list `metrics`."""


@dataclass(frozen=True, slots=True)
class Evaluator:
    """A metric of a source with its config, resolved and hashed.

    `settings` is what the hash stands for: the fields of the config that decide how scores are computed, and under
    `step_policy` those of the source's, where it is not the literal reading.
    """

    metric: Metric[Any]
    config: BaseModel
    config_hash: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def code_version(self) -> str:
        """What Dagster calls the version of the code: metric version and config hash."""
        return f"{self.metric.manifest.version}-{self.config_hash[:12]}"

    @property
    def name(self) -> str:
        """Name of the metric."""
        return self.metric.manifest.name

    @property
    def annotation_key(self) -> AnnotationKey:
        """Key of the annotations it is given; a metric that requires none may still look at the expected steps."""
        return self.metric.manifest.annotation_key or "expected_steps"

    @property
    def row_names(self) -> tuple[str, ...]:
        """The names its rows have in the column `metric`: those of its family's members, else its own."""
        return self.metric.manifest.family or (self.name,)

    @property
    def headline(self) -> str:
        """The name of the row that stands for an occurrence."""
        return self.metric.manifest.headline or self.name


def evaluators_of(source: Source) -> tuple[Evaluator, ...]:
    """Resolve the metrics and configs of a source, at least one, in its order.

    Raises:
        UnknownMetricError: no metric of that name or version is registered.
        ConfigError: a config is refused, a metric does not score what the source lists, or the assets or rows of two
            metrics would have the same names.
    """
    found: list[Evaluator] = []
    for place, choice in enumerate(source.choices):
        try:
            evaluator = _evaluator(source, choice)
            _refuse_same_names(source, evaluator, found)
        except (ConfigError, UnknownMetricError) as error:
            if source.metrics:
                _place_in_list(error, place)
            raise
        found.append(evaluator)
    _refuse_unknown_thresholds(source, found)
    return tuple(found)


def evaluator_of(source: Source, metric: str | None = None) -> Evaluator:
    """Resolve one metric of a source with its config.

    Args:
        source: the source.
        metric: name of the metric, or of a member of its family; the only one where left out.

    Raises:
        UnknownMetricError: as `evaluators_of`.
        ConfigError: as `evaluators_of`; or the source is not scored by that metric, or by several and none was named.
    """
    evaluators = evaluators_of(source)
    if metric is None and len(evaluators) == 1:
        return evaluators[0]
    for evaluator in evaluators:
        if metric == evaluator.name or metric in evaluator.row_names:
            return evaluator
    known = ", ".join(f"`{evaluator.name}`" for evaluator in evaluators)
    asked = f"Source `{source.name}` is not scored by `{metric}`" if metric else f"Name a metric of `{source.name}`"
    msg = f"{asked}; it is scored by {known}."
    raise ConfigError(msg, "metric")


def summarised_metrics(source: Source, evaluators: Iterable[Evaluator]) -> list[SummarisedMetric]:
    """Return which rows of a source are summarised, and what of them passes."""
    return [
        SummarisedMetric(name, evaluator.headline, source.summaries.pass_threshold(name, lower_is_better=lower), lower)
        for evaluator in evaluators
        for lower in (evaluator.metric.manifest.direction == "lower_is_better",)
        for name in evaluator.row_names
    ]


def _refuse_unknown_thresholds(source: Source, evaluators: Sequence[Evaluator]) -> None:
    known = [name for evaluator in evaluators for name in evaluator.row_names]
    for name in source.summaries.pass_thresholds:
        if name not in known:
            msg = (
                f"summaries.pass_thresholds of source `{source.name}` names {name!r}, of which it has no scores; "
                f"use {', '.join(known)}."
            )
            raise ConfigError(msg, "summaries.pass_thresholds")


def _evaluator(source: Source, choice: MetricChoice) -> Evaluator:
    metric = get_metric(choice.name, choice.version)
    for kind in source.partition_types:
        if kind not in metric.manifest.partition_types:
            msg = (
                f"Metric `{metric.manifest.name}` scores no {kind}s, which source `{source.name}` lists under "
                f"partition_types; list {' or '.join(metric.manifest.partition_types)}."
            )
            raise ConfigError(msg, "partition_types")
    config = build_config(metric, choice.config)
    policy = source.step_policy.settings()
    settings = {**deciding_settings(config), **({"step_policy": dict(policy)} if policy else {})}
    return Evaluator(metric, config, config_hash(config, policy), settings)


def _refuse_same_names(source: Source, evaluator: Evaluator, others: Iterable[Evaluator]) -> None:
    manifest = evaluator.metric.manifest
    for other in others:
        same = {manifest.identifier, *evaluator.row_names} & {other.metric.manifest.identifier, *other.row_names}
        if same:
            msg = (
                f"Metrics `{other.name}` and `{evaluator.name}` of source `{source.name}` would both write "
                f"`{min(same)}`; score by one of them here, and by the other in a source of its own."
            )
            raise ConfigError(msg, "metric")


def _place_in_list(error: ConfigError | UnknownMetricError, place: int) -> None:
    """Name the setting that is to blame as the list `metrics` has it."""
    if error.setting in _IN_LIST:
        error.setting = f"metrics.{place}.{_IN_LIST[error.setting]}"
