"""Annotations as people write them: which steps a trace, a session or a task should take (contract, section 11).

A target has an annotation for each key: `expected_steps` and `reference_trajectories` are revisioned apart.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from stepacc_core.model import CanonicalPartition, PartitionType

TargetType = Literal["trace", "session", "task"]

EXPECTED_STEPS_KEY = "expected_steps"
"""The annotation key that `agent.step_accuracy` reads."""

REFERENCES_KEY = "reference_trajectories"
"""The annotation key that `agent.trajectory_match` reads."""

KEYS = (EXPECTED_STEPS_KEY, REFERENCES_KEY)
"""All annotation keys, in the order in which an entry of a file is stored."""


@dataclass(frozen=True, slots=True)
class AnnotationTarget:
    """What an annotation speaks about, and the type of partition it is used for."""

    type: TargetType
    id: str
    partition_type: PartitionType

    def __str__(self) -> str:
        """Name the target as a message would."""
        return f"{self.type} `{self.id}` ({self.partition_type} partitions)"


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation; `value` is what stands under `key`, and `source` is None where the file names none."""

    target: AnnotationTarget
    value: Any
    key: str = EXPECTED_STEPS_KEY
    source: str | None = None
    author: str | None = None
    note: str | None = None
    confirmed: bool = True
    """False for a suggestion that nobody has looked at yet."""


def annotation_in_force(
    annotations: Iterable[Annotation], partition: CanonicalPartition, key: str = EXPECTED_STEPS_KEY
) -> Annotation | None:
    """Return the annotation a partition is scored against: one made for itself, else one made for its task.

    Only annotations under the key and for the partition's type count. Of several for one target the last wins.
    """
    own: Annotation | None = None
    of_task: Annotation | None = None
    for annotation in annotations:
        target = annotation.target
        if annotation.key != key or target.partition_type != partition.partition_type:
            continue
        if target.type == partition.partition_type and target.id == partition.partition_id:
            own = annotation
        elif target.type == "task" and target.id == partition.task_id:
            of_task = annotation
    return own or of_task
