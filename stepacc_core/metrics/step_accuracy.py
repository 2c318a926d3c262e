"""`agent.step_accuracy` 2.0.0: did the agent take the expected steps, in the expected order?"""

from collections.abc import Hashable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from stepacc_core.alignment import align, align_by_position
from stepacc_core.errors import ConfigError, FailureCode, ScoringError
from stepacc_core.metrics.base import Reference
from stepacc_core.metrics.manifest import Manifest, load_manifest
from stepacc_core.metrics.step_accuracy_config import ScoringMethod, StepAccuracyConfig, StrictPositionConfig
from stepacc_core.model import CanonicalPartition, Failure, Result, Step
from stepacc_core.steps import collect_steps, not_applicable_reason, step_names
from stepacc_core.trajectory import Trajectory, parse_trajectory

Config = StepAccuracyConfig | StrictPositionConfig

EXPECTED_STEPS = "expected_steps"
"""The column, the annotation key and the config field that hold a trajectory."""

_FEW = 200
"""Spans of a trace up to which its evaluation is worth keeping for others that are alike."""
_CHARACTERS = 50
"""Of an expected step, likewise."""


class StepAccuracy:
    """The scorer of both versions; they differ in manifest and config alone."""

    def __init__(self, manifest_path: str, config_model: type[Config]) -> None:
        self._manifest = load_manifest("stepacc_core", manifest_path, config_model)
        self._config_model = config_model

    @property
    def manifest(self) -> Manifest:
        """The facts about this version."""
        return self._manifest

    @property
    def config_model(self) -> type[Config]:
        """The pydantic model of this version's config."""
        return self._config_model

    def reference(self, partition: CanonicalPartition, config: Config) -> Reference | None:
        """Return the trajectory in force: from the config's annotations, the column, or the config, in that order."""
        by_key = (config.annotations or {}).get(partition.partition_id, {})
        if EXPECTED_STEPS in by_key:
            return Reference(by_key[EXPECTED_STEPS], "annotations")
        if partition.expected_steps is not None or partition.annotation:  # an annotation of nothing is a bad one
            return Reference(partition.expected_steps, "column")
        if config.expected_steps is not None:
            return Reference(config.expected_steps, "config")
        return None

    def observed(self, partition: CanonicalPartition) -> list[list[str]]:
        """Return what an alignment depends on: each step's name and kind, in order."""
        return [list(each) for each in step_names(partition)]

    @property
    def reads_content(self) -> bool:
        """Whether arguments, outputs, tokens or costs make a difference: only to what somebody makes of this class."""
        return type(self) is not StepAccuracy

    def alike(self, partition: CanonicalPartition, config: Config) -> Hashable | None:
        """Return the expectation and the steps, of which there are few in most traces; None for a session."""
        if self.reads_content or partition.partition_type != "trace" or len(partition.spans) > _FEW:
            return None
        if not_applicable_reason(partition):
            return None
        reference = self.reference(partition, config)
        try:
            names = step_names(partition)
        except ScoringError:
            return None
        expected = repr(reference)
        if len(expected) > _FEW * _CHARACTERS:
            return None
        return expected, partition.annotation, tuple(names)

    def score(self, partition: CanonicalPartition, config: Config | None = None) -> Result:
        """Score one trace or session (contract, sections 2 to 7).

        What is wrong with the partition is a status of the result, never an exception.
        """
        config = self._config_model() if config is None else config
        reference = self.reference(partition, config)
        labels = _labels(partition, config, reference)
        if reason := not_applicable_reason(partition):
            return Result(status="not_applicable", reason=reason, metadata=labels)
        try:
            trajectory = _trajectory(partition, reference)
            return _scored(trajectory, collect_steps(partition), config.scoring_method, labels)
        except ScoringError as error:
            return Result(status="failed", error=Failure(error.code, error.message), metadata=labels)


def step_accuracy(
    expected_steps: Any, steps: Sequence[Step], *, scoring_method: ScoringMethod = "edit_distance"
) -> Result:
    """Score observed steps against expected ones, without a partition.

    Args:
        expected_steps: a list of names and of lists of names (groups), or JSON text of one.
        steps: what the agent did, in order.
        scoring_method: `edit_distance` (graded, groups allowed) or `strict_position`.

    Returns:
        A `scored` result, or a `failed` one where the expected steps are missing or not valid.

    Raises:
        ConfigError: there is no such scoring method, or `steps` holds something else than steps.
    """
    if scoring_method not in ("edit_distance", "strict_position"):
        msg = f"There is no scoring method {scoring_method!r}; use `edit_distance` or `strict_position`."
        raise ConfigError(msg)
    labels = {"metric_name": "step_accuracy", "scoring_method": scoring_method, "expected_from": "config"}
    try:
        return _scored(_given_trajectory(expected_steps), steps, scoring_method, labels)
    except ScoringError as error:
        return Result(status="failed", error=Failure(error.code, error.message), metadata=labels)
    except AttributeError:
        given: Sequence[object] = steps
        strange = next((step for step in given if not isinstance(step, Step)), None)
        if strange is None:
            raise
        msg = f"Observed steps are Step objects, and one is {strange!r}; write Step(name, kind)."
        raise ConfigError(msg) from None


def get_trace_metric() -> StepAccuracy:
    """Return the metric: its manifest, config model and scorer."""
    return _METRIC


def _given_trajectory(expected_steps: Any) -> Trajectory:
    if expected_steps is None:
        msg = "No expected steps were given; pass a list of names."
        raise ScoringError(FailureCode.MISSING_EXPECTED_STEPS, msg)
    return parse_trajectory(expected_steps)


def _labels(partition: CanonicalPartition, config: Config, reference: Reference | None) -> dict[str, Any]:
    labels: dict[str, Any] = {"metric_name": config.metric_name, "scoring_method": config.scoring_method}
    if reference:
        labels["expected_from"] = reference.origin
        if reference.origin == "column" and partition.annotation:
            labels["annotation"] = {"id": partition.annotation.id, "revision": partition.annotation.revision}
    return labels


def _trajectory(partition: CanonicalPartition, reference: Reference | None) -> Trajectory:
    occurrence = f"{partition.partition_type} `{partition.partition_id}`"
    if reference is None:
        msg = (
            f"Nobody said which steps {occurrence} should take; annotate it or its task, "
            "or give the run a fallback in config.expected_steps."
        )
        raise ScoringError(FailureCode.MISSING_EXPECTED_STEPS, msg)
    try:
        return parse_trajectory(reference.value)
    except ScoringError as error:
        code = error.code
        if code is FailureCode.INVALID_ANNOTATION_JSON and reference.origin == "column" and not partition.annotation:
            code = FailureCode.INVALID_EXPECTED_STEPS
        msg = f"{_source(partition, reference)} of {occurrence}: {error.message}"
        raise ScoringError(code, msg) from None


def _source(partition: CanonicalPartition, reference: Reference) -> str:
    if reference.origin == "annotations":
        return "The entry in config.annotations"
    if partition.annotation:
        return f"Annotation {partition.annotation.id}, revision {partition.annotation.revision},"
    return "The column expected_steps"


def _scored(trajectory: Trajectory, steps: Sequence[Step], method: ScoringMethod, labels: dict[str, Any]) -> Result:
    total = trajectory.total_steps
    metadata = {
        **labels,
        "expected_steps": trajectory.authored(),
        "actual_steps": [step.name for step in steps],
        "total_steps": total,
        **_traces(steps),
    }
    if method == "strict_position":
        if trajectory.has_groups:
            msg = (
                f"The expected steps {trajectory.authored()!r} have a group, which scoring by position does not allow; "
                "list plain names, or score by edit_distance."
            )
            raise ScoringError(FailureCode.GROUP_UNDER_STRICT_POSITION, msg)
        by_position = align_by_position(trajectory, steps)
        metadata |= {
            "correct_steps": by_position.matches,
            "steps": by_position.entries,
            "extra_steps": by_position.extra_steps,
        }
        return Result(status="scored", score=by_position.matches / total, metadata=metadata)
    alignment = align(trajectory, steps)
    metadata |= {
        "correct_steps": alignment.matches,
        "steps": alignment.entries,
        "edit_distance": alignment.distance,
    }
    return Result(status="scored", score=1 - alignment.distance / max(total, len(steps)), metadata=metadata)


def _traces(steps: Sequence[Step]) -> dict[str, Any]:
    """Return the traces that a session's steps are of, in stretches; nothing where they are of one trace."""
    stretches = [
        {"trace_id": trace, "steps": len(list(run))} for trace, run in groupby(steps, attrgetter("trace_id")) if trace
    ]
    return {"traces": stretches} if len(stretches) > 1 else {}


_METRIC = StepAccuracy("manifests/agent.step_accuracy-2.0.0.yaml", StepAccuracyConfig)
