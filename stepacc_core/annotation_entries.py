"""Annotation files as people write them: the one place for their keys and for what is refused.

The file's JSON Schema is made from these models too, see `stepacc_core.annotation_schema`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from stepacc_core.annotation_sense import senseless_references, senseless_steps
from stepacc_core.annotations import EXPECTED_STEPS_KEY, KEYS, REFERENCES_KEY, Annotation, AnnotationTarget, TargetType
from stepacc_core.errors import ScoringError
from stepacc_core.model import PartitionType
from stepacc_core.references.parse import authored, parse_references
from stepacc_core.shown import shown
from stepacc_core.trajectory import parse_trajectory

_NAME = {"type": "string", "minLength": 1, "pattern": r"\S"}
_EXPECTED_STEPS = {"type": "array", "minItems": 1, "items": {"anyOf": [_NAME, {"type": "array", "items": _NAME}]}}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, str_min_length=1)

    @field_validator("id", "source", check_fields=False)
    @classmethod
    def _is_not_blank(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            msg = f"{shown(value)} is blank; write a name"
            raise ValueError(msg)
        return value


@contextmanager
def _refused() -> Iterator[None]:
    """Let pydantic take a refusal as one of its own."""
    try:
        yield
    except ScoringError as error:
        raise ValueError(error.message.rstrip(".")) from None


class Target(_Strict):
    """What an annotation speaks about."""

    type: TargetType = Field(description="What `id` is the id of.")
    id: str = Field(description="The id of the task, trace or session.")


class AnnotationFileEntry(_Strict):
    """What is expected of one target; each of the two keys is an annotation of its own, with its own revisions."""

    target: Target
    partition_type: PartitionType | None = Field(
        default=None, description="What a task's annotation is used for; trace where left out."
    )
    expected_steps: Annotated[list[Any] | None, WithJsonSchema(_EXPECTED_STEPS)] = Field(
        default=None, description="For agent.step_accuracy: names in order; a list in the list may come in any order."
    )
    reference_trajectories: Any = Field(
        default=None, description="For agent.trajectory_match: what is acceptable for the task."
    )
    source: str | None = Field(default=None, description="The source; by default that of the file.")
    author: str | None = Field(default=None, description="Who says so.")
    note: str | None = Field(default=None, description="Why.")
    confirmed: bool = Field(default=True, description="false for a suggestion, which is imported only with --confirm.")

    @field_validator("expected_steps")
    @classmethod
    def _are_steps(cls, value: list[Any] | None) -> list[Any] | None:
        with _refused():
            if value is not None and (said := senseless_steps(parse_trajectory(value))):
                raise ValueError(said)
        return value

    @field_validator("reference_trajectories")
    @classmethod
    def _are_references(cls, value: Any) -> Any:
        with _refused():
            if value is not None and (said := senseless_references(parse_references(value))):
                raise ValueError(said)
        return value

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [key for key in KEYS if key in self.model_fields_set]
        if not given:
            msg = f"neither `{EXPECTED_STEPS_KEY}` nor `{REFERENCES_KEY}` stands in it; write one of them, or both"
            raise ValueError(msg)
        if empty := [key for key in given if getattr(self, key) is None]:
            msg = f"`{empty[0]}` has no value; write one, or leave the key out"
            raise ValueError(msg)
        own = None if self.target.type == "task" else self.target.type
        if own and self.partition_type not in (None, own):
            msg = (
                f"partition_type {self.partition_type!r} does not fit a target of type {own!r}; "
                f"write {own!r} or leave it out"
            )
            raise ValueError(msg)
        return self

    def annotations(self, source: str | None) -> list[Annotation]:
        """Return an annotation for each key.

        Args:
            source: the source of an entry that names none.
        """
        own: PartitionType = "session" if self.target.type == "session" else "trace"
        target = AnnotationTarget(self.target.type, self.target.id, self.partition_type or own)
        values = {EXPECTED_STEPS_KEY: self.expected_steps, REFERENCES_KEY: authored(self.reference_trajectories)}
        return [
            Annotation(target, value, key, self.source or source, self.author, self.note, self.confirmed)
            for key, value in values.items()
            if value is not None
        ]


class AnnotationFile(_Strict):
    """An annotations file; a bare list of entries is one as well."""

    schema_place: str | None = Field(default=None, alias="$schema", description="Where an editor finds this schema.")
    source: str | None = Field(default=None, description="The source of entries that name none.")
    annotations: list[Any] = Field(min_length=1, description="The entries.")
