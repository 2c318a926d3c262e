"""Configs of `agent.step_accuracy` (contract, sections 2 and 10)."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from stepacc_core.errors import ScoringError
from stepacc_core.metrics.base import PARAM_ROLE
from stepacc_core.trajectory import parse_trajectory

ScoringMethod = Literal["strict_position", "edit_distance"]

_RUN_INPUT = {PARAM_ROLE: "run_input"}
_LABEL = {PARAM_ROLE: "scoring_metadata"}


class _ExpectationConfig(BaseModel):
    """The fields that both versions share: where expectations come from, and what to call the metric."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    annotations: Annotated[
        dict[str, dict[str, str]] | None,
        Field(
            description="Occurrence id to {key: text}; the text under `expected_steps` is JSON.",
            json_schema_extra=_RUN_INPUT,
        ),
    ] = None
    expected_steps: Annotated[
        list[str | list[str]] | None,
        Field(
            description="Expected steps of occurrences that have none of their own; a list inside is a group.",
            min_length=1,
            json_schema_extra=_RUN_INPUT,
        ),
    ] = None
    metric_name: Annotated[str, Field(description="A label repeated in the metadata.", json_schema_extra=_LABEL)] = (
        "step_accuracy"
    )

    @field_validator("expected_steps", mode="after")
    @classmethod
    def _is_a_trajectory(cls, value: list[str | list[str]] | None) -> list[str | list[str]] | None:
        if value is not None:
            _parse(value)
        return value


class StepAccuracyConfig(_ExpectationConfig):
    """Config of version 2.0.0."""

    scoring_method: Annotated[
        ScoringMethod, Field(description="Graded alignment with unordered groups, or position by position.")
    ] = "edit_distance"

    @model_validator(mode="after")
    def _refuse_groups_by_position(self) -> Self:
        groups = [step for step in self.expected_steps or () if isinstance(step, list)]
        if self.scoring_method == "strict_position" and groups:
            msg = (
                f"expected_steps {self.expected_steps!r} has a group, which scoring_method `strict_position` does not "
                "allow; list plain names, or use `edit_distance`"
            )
            raise ValueError(msg)
        return self


class StrictPositionConfig(_ExpectationConfig):
    """Config of version 1.0.0, which knows one scoring method and therefore names none."""

    @property
    def scoring_method(self) -> ScoringMethod:
        """Always `strict_position`."""
        return "strict_position"


def _parse(value: list[str | list[str]]) -> None:
    try:
        parse_trajectory(value)
    except ScoringError as error:
        raise ValueError(error.message.rstrip(".")) from None
