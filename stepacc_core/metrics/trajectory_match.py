"""`agent.trajectory_match` 1.0.0: the separate questions about a run, judged by the references of its task.

Was the path acceptable, were the arguments right, was anything wasted, and is the answer right? A family of rows, one
for each question, never blended into one number.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stepacc_core.errors import ConfigError, FailureCode, ScoringError
from stepacc_core.metrics.base import Reference
from stepacc_core.metrics.manifest import Manifest, load_manifest
from stepacc_core.metrics.trajectory_match_config import TrajectoryMatchConfig
from stepacc_core.model import CanonicalPartition, Failure, Result, Step
from stepacc_core.steps import not_applicable_reason

if TYPE_CHECKING:
    from stepacc_core.references import TaskReferences

# What judges runs and reads references is imported where it is needed: the models of references take as long to load as
# all else that a command needs which scores by another metric.

REFERENCE_TRAJECTORIES = "reference_trajectories"
"""The column, the annotation key and the config field that hold references."""


class TrajectoryMatch:
    """The scorer."""

    def __init__(self, manifest_path: str) -> None:
        self._manifest = load_manifest("stepacc_core", manifest_path, TrajectoryMatchConfig)

    @property
    def manifest(self) -> Manifest:
        """The facts about this version."""
        return self._manifest

    @property
    def config_model(self) -> type[TrajectoryMatchConfig]:
        """The pydantic model of this version's config."""
        return TrajectoryMatchConfig

    def reference(self, partition: CanonicalPartition, config: TrajectoryMatchConfig) -> Reference | None:
        """Return the references in force: from the config's annotations, the column, or the config, in that order."""
        by_key = (config.annotations or {}).get(partition.partition_id, {})
        if REFERENCE_TRAJECTORIES in by_key:
            return Reference(by_key[REFERENCE_TRAJECTORIES], "annotations")
        if partition.reference_trajectories is not None or partition.annotation:
            return Reference(partition.reference_trajectories, "column")
        if config.reference_trajectories is not None:
            return Reference(config.reference_trajectories, "config")
        return None

    def observed(self, partition: CanonicalPartition) -> dict[str, Any]:
        """Return all spans, the gaps, which the metadata repeat, and the task, which a function of the user's gets."""
        return {
            "spans": [asdict(span) for span in partition.spans],
            "gaps": [asdict(gap) for gap in partition.gaps],
            "task_id": partition.task_id,
        }

    def score(self, partition: CanonicalPartition, config: TrajectoryMatchConfig | None = None) -> Result:
        """Judge one trace or session.

        What is wrong with the partition is a status of the result and of all its members, never an exception. The
        result's score is that of `trajectory_match.passed`.
        """
        from stepacc_core.judging.members import result_of, same_for_all  # noqa: PLC0415
        from stepacc_core.judging.run import run_of  # noqa: PLC0415

        config = TrajectoryMatchConfig() if config is None else config
        reference = self.reference(partition, config)
        labels = _labels(partition, config, reference)
        if reason := not_applicable_reason(partition):
            return same_for_all(Result(status="not_applicable", reason=reason, metadata=labels))
        try:
            return result_of(run_of(partition), _references(partition, reference), labels)
        except ScoringError as error:
            return _failed(error, labels)


def trajectory_match(
    references: Any, steps: Sequence[Step], *, final_answer: Any = None, task_id: str | None = None
) -> Result:
    """Judge observed steps by references, without a partition.

    Args:
        references: what is acceptable: the mapping of an annotation `reference_trajectories`, JSON text of it, or a
            list of names (one reference).
        steps: what the agent did, in order.
        final_answer: what it answered, None where that is not known.
        task_id: given to an answer check that is a function of your own.

    Returns:
        A `scored` result with the rows in `family`, or a `failed` one where the references are missing or not valid.

    Raises:
        ConfigError: `steps` holds something else than steps.
    """
    from stepacc_core.judging.members import result_of  # noqa: PLC0415
    from stepacc_core.judging.run import Run  # noqa: PLC0415

    given: Sequence[object] = steps
    strange = next((step for step in given if not isinstance(step, Step)), None)
    if strange is not None:
        msg = f"Observed steps are Step objects, and one is {strange!r}; write Step(name, kind)."
        raise ConfigError(msg)
    labels = {"metric_name": "trajectory_match", "expected_from": "config"}
    try:
        return result_of(Run(tuple(steps), final_answer, task_id), _given(references), labels)
    except ScoringError as error:
        return _failed(error, labels)


def get_trace_metric() -> TrajectoryMatch:
    """Return the metric: its manifest, config model and scorer."""
    return _METRIC


def _given(references: Any) -> "TaskReferences":
    if references is None:
        msg = "No references were given; pass a list of names, or a mapping with `references`."
        raise ScoringError(FailureCode.MISSING_REFERENCES, msg)
    return _parsed(references)


def _parsed(references: Any) -> "TaskReferences":
    from stepacc_core.references import parse_references  # noqa: PLC0415

    return parse_references(references)


def _failed(error: ScoringError, labels: dict[str, Any]) -> Result:
    from stepacc_core.judging.members import same_for_all  # noqa: PLC0415

    return same_for_all(Result(status="failed", error=Failure(error.code, error.message), metadata=labels))


def _labels(
    partition: CanonicalPartition, config: TrajectoryMatchConfig, reference: Reference | None
) -> dict[str, Any]:
    labels: dict[str, Any] = {"metric_name": config.metric_name}
    if reference:
        labels["expected_from"] = reference.origin
        if reference.origin == "column" and partition.annotation:
            labels["annotation"] = {"id": partition.annotation.id, "revision": partition.annotation.revision}
    return labels


def _references(partition: CanonicalPartition, reference: Reference | None) -> "TaskReferences":
    occurrence = f"{partition.partition_type} `{partition.partition_id}`"
    if reference is None:
        msg = (
            f"Nobody said which trajectories are acceptable for {occurrence}; annotate it or its task under "
            "`reference_trajectories`, or give the run a fallback in config.reference_trajectories."
        )
        raise ScoringError(FailureCode.MISSING_REFERENCES, msg)
    try:
        return _parsed(reference.value)
    except ScoringError as error:
        msg = f"{_source(partition, reference)} of {occurrence}: {error.message}"
        raise ScoringError(error.code, msg) from None


def _source(partition: CanonicalPartition, reference: Reference) -> str:
    if reference.origin == "annotations":
        return "The entry in config.annotations"
    if reference.origin == "config":
        return "The config's reference_trajectories, in force for want of others,"
    if partition.annotation:
        return f"Annotation {partition.annotation.id}, revision {partition.annotation.revision},"
    return "The column reference_trajectories"


_METRIC = TrajectoryMatch("manifests/agent.trajectory_match-1.0.0.yaml")
