"""Config of `agent.trajectory_match` (contract, section 1)."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from stepacc_core.errors import ScoringError
from stepacc_core.metrics.base import PARAM_ROLE

_RUN_INPUT = {PARAM_ROLE: "run_input"}
_LABEL = {PARAM_ROLE: "scoring_metadata"}


class TrajectoryMatchConfig(BaseModel):
    """Config of version 1.0.0. What decides a score stands in the references themselves."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    annotations: Annotated[
        dict[str, dict[str, str]] | None,
        Field(
            description="Occurrence id to {key: text}; the text under `reference_trajectories` is JSON.",
            json_schema_extra=_RUN_INPUT,
        ),
    ] = None
    reference_trajectories: Annotated[
        dict[str, Any] | list[Any] | None,
        Field(
            description="References of occurrences that have none of their own; a list of names is one reference.",
            json_schema_extra=_RUN_INPUT,
        ),
    ] = None
    metric_name: Annotated[str, Field(description="A label repeated in the metadata.", json_schema_extra=_LABEL)] = (
        "trajectory_match"
    )

    @field_validator("reference_trajectories", mode="after")
    @classmethod
    def _are_references(cls, value: dict[str, Any] | list[Any] | None) -> dict[str, Any] | list[Any] | None:
        if value is not None:
            from stepacc_core.references import parse_references  # noqa: PLC0415 (its models are slow to load)

            try:
                parse_references(value)
            except ScoringError as error:
                raise ValueError(error.message.rstrip(".")) from None
        return value
