"""Manifests: what a metric is called, accepts, costs and means, kept as YAML package data.

A manifest is the one place for these facts. Op names, pool limits, timeouts and code versions are derived from it.
"""

from importlib import resources
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stepacc_core.errors import ManifestError
from stepacc_core.model import PartitionType, SpanKind

Version = Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


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
    config_schema: dict[str, Any] = Field(default_factory=dict, description="Generated from the config model.")

    @property
    def identifier(self) -> str:
        """The last part of the name, fit for op, asset and column names: `step_accuracy`."""
        return self.name.rpartition(".")[2]

    @property
    def needs_expected_steps(self) -> bool:
        """Whether an occurrence that nobody annotated cannot be scored."""
        return "expected_steps" in self.required_columns

    @property
    def version_key(self) -> tuple[int, ...]:
        """The version as numbers, so that 10.0.0 is newer than 9.0.0."""
        return tuple(int(part) for part in self.version.split("."))


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
        document = yaml.safe_load(text)
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
