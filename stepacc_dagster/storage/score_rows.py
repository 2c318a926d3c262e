"""Rows of the score table: what an evaluation of one trace or session leaves there."""

from dataclasses import dataclass, field
from typing import Any, Self

from stepacc_core.metrics import Evaluation, Manifest
from stepacc_core.model import CanonicalPartition, Member, PartitionType, Result, Status

_INTEGER = 2**31


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """One evaluation of one partition: the result, and the hashes that tell whether it was made before.

    `annotation_id` is that of the revision which set the expectation, None when it came from the config or there is
    none. `message` is the sentence of a failure. `member` is the name of the member of a family that the row is of,
    None for a metric without one.
    """

    partition_type: PartitionType
    partition_id: str
    status: Status
    session_id: str | None = None
    task_id: str | None = None
    code: str | None = None
    reason: str | None = None
    message: str | None = None
    score: float | None = None
    total_steps: int | None = None
    correct_steps: int | None = None
    edit_distance: int | None = None
    expected_from: str | None = None
    annotation_id: int | None = None
    reference_hash: str | None = None
    steps_hash: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    member: str | None = None

    @classmethod
    def all_of(cls, manifest: Manifest, partition: CanonicalPartition, evaluation: Evaluation) -> list[Self]:
        """Return the rows of an evaluation of a partition: one, or one for each member of a family.

        The metadata of the occurrence goes with the headline's row. Where the metric gave no members, since the
        occurrence could not be scored at all, each member's row says why.
        """
        result = evaluation.result
        if not manifest.family:
            return [cls._of(None, partition, evaluation, result, result.metadata)]
        rows: list[Self] = []
        given = {member.name: member for member in result.family}
        for name in manifest.family:
            said = given.get(name)
            shown = {**(result.metadata if name == manifest.headline else {}), **(said.metadata if said else {})}
            rows.append(cls._of(name, partition, evaluation, said or result, shown))
        return rows

    @classmethod
    def _of(
        cls,
        member: str | None,
        partition: CanonicalPartition,
        evaluation: Evaluation,
        result: Result | Member,
        metadata: dict[str, Any],
    ) -> Self:
        reference = evaluation.reference
        from_column = reference is not None and reference.origin == "column"
        return cls(
            partition_type=partition.partition_type,
            partition_id=partition.partition_id,
            session_id=partition.session_id,
            task_id=partition.task_id,
            status=result.status,
            code=result.code,
            reason=result.reason,
            message=result.error.message if result.error else None,
            score=result.score,
            total_steps=_count(metadata.get("total_steps")),
            correct_steps=_count(metadata.get("correct_steps")),
            edit_distance=_count(metadata.get("edit_distance")),
            expected_from=reference.origin if reference else None,
            annotation_id=partition.annotation.id if partition.annotation and from_column else None,
            reference_hash=evaluation.reference_hash,
            steps_hash=evaluation.steps_hash,
            metadata=metadata,
            member=member,
        )


def _count(value: object) -> int | None:
    """Return a count that the column holds; another metric's metadata may call anything by its name."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _INTEGER else None
