"""Manifests: what a metric is called, accepts, costs and means, kept as YAML package data.

A manifest is the one place for these facts. Op names, pool limits, timeouts and code versions are derived from it.
"""

from importlib import resources
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from stepacc_core.errors import ManifestError
from stepacc_core.model import PartitionType, SpanKind

Version = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")]

AnnotationKey = Literal["expected_steps", "reference_trajectories"]
"""The annotation keys that a metric may require as its column."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""That of libyaml where PyYAML has it: commands wait for the manifests, and it takes a tenth of the time."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class AnyOf(_Strict):
    """A requirement met by any one of the kinds."""

    anyOf: tuple[SpanKind, ...]  # noqa: N815 (the manifest format's own key)


class Accepted(_Strict):
    """A partition format that the scorer takes."""

    name: str


class Execution(_Strict):
    """How a metric is to be run."""

    emits_metric_family: bool
    function_name: str | None
    max_concurrency: int = Field(ge=1, description="Scoring steps at work at once, over all sources.")
    processing_kind: Literal["cpu", "io"]
    timeout_seconds: int = Field(ge=1, description="Longest scoring of one Dagster partition.")


class MetricMetadata(_Strict):
    """What people read to understand a score."""

    summary: str
    methodology: tuple[str, ...]
    score_semantics: str
    worked_example: str


class Manifest(_Strict):
    """The facts about one version of one metric (contract of `agent.step_accuracy`, section 1)."""

    manifest_version: Literal["1"]
    kind: Literal["trace_metric"]
    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+$")]
    display_name: str
    version: Version
    metric_type: Literal["pointwise"]
    scorer_contract: Literal["per_row"]
    direction: Literal["higher_is_better", "lower_is_better"]
    description: str
    entrypoint: str
    partition_types: tuple[PartitionType, ...]
    required_kinds: tuple[AnyOf, ...]
    required_columns: tuple[str, ...]
    accepts: tuple[Accepted, ...]
    dependencies: tuple[str, ...]
    unsupported_trace_shapes: tuple[str, ...]
    execution: Execution
    metric_metadata: MetricMetadata
    family: tuple[str, ...] = Field(
        (), validate_default=True, description="Names of the members in order, where the metric emits a family."
    )
    headline: str | None = Field(
        None, validate_default=True, description="The member whose score stands for the occurrence."
    )
    config_schema: dict[str, Any] = Field(default_factory=dict, description="Generated from the config model.")

    @property
    def identifier(self) -> str:
        """The last part of the name, fit for op, asset and column names: `step_accuracy`."""
        return self.name.rpartition(".")[2]

    @property
    def annotation_key(self) -> AnnotationKey | None:
        """The annotation key without which an occurrence cannot be scored; None where the metric needs none."""
        return next((key for key in get_args(AnnotationKey) if key in self.required_columns), None)

    @property
    def needs_expected_steps(self) -> bool:
        """Whether the annotation needed is that of `agent.step_accuracy`."""
        return self.annotation_key == "expected_steps"

    @property
    def version_key(self) -> tuple[int, ...]:
        """The version as numbers, so that 10.0.0 is newer than 9.0.0."""
        return tuple(int(part) for part in self.version.split("."))

    @field_validator("family")
    @classmethod
    def _fits_execution(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        execution = info.data.get("execution")
        if execution and execution.emits_metric_family is not bool(value):
            msg = "name the members where `execution.emits_metric_family` is true, and only there"
            raise ValueError(msg)
        if len(set(value)) < len(value):
            msg = "a name stands twice; give each member a name of its own"
            raise ValueError(msg)
        return value

    @field_validator("headline")
    @classmethod
    def _is_a_member(cls, value: str | None, info: ValidationInfo) -> str | None:
        family = info.data.get("family", ())
        if value not in (family or (None,)):
            msg = "name one of the members in `family`, and none where there is no family"
            raise ValueError(msg)
        return value


def load_manifest(package: str, path: str, config_model: type[BaseModel]) -> Manifest:
    """Load and validate a manifest from package data, with the schema of its config beside it.

    Args:
        package: the package that holds the file, such as `stepacc_core`.
        path: the file's path inside the package, such as `manifests/agent.step_accuracy-2.0.0.yaml`.
        config_model: the pydantic model of the metric's config.

    Raises:
        ManifestError: the file is missing or a field is wrong; the message names file and field.
    """
    where = f"Manifest `{path}` of package `{package}`"
    try:
        text = resources.files(package).joinpath(path).read_text(encoding="utf-8")
        document = yaml.load(text, _LOADER)  # noqa: S506 (a safe loader)
        return Manifest.model_validate({**document, "config_schema": config_model.model_json_schema()})
    except (OSError, ModuleNotFoundError) as error:
        msg = f"{where} cannot be read ({error}); ship it as package data."
        raise ManifestError(msg) from None
    except (yaml.YAMLError, TypeError) as error:
        msg = f"{where} is no YAML mapping: {error}."
        raise ManifestError(msg) from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        msg = f"{where}, field `{field}`: {first['msg']}; given {first['input']!r}."
        raise ManifestError(msg) from None
