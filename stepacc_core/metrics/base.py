"""What a metric is, and how one occurrence is evaluated with what makes the evaluation recognisable."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel, ValidationError

from stepacc_core.errors import ConfigError, ScoringError
from stepacc_core.fingerprint import fingerprint
from stepacc_core.metrics.manifest import Manifest
from stepacc_core.model import CanonicalPartition, Result
from stepacc_core.shown import shown

ConfigT = TypeVar("ConfigT", bound=BaseModel)

ReferenceOrigin = Literal["annotations", "column", "config"]

PARAM_ROLE = "x-aip-param-role"
"""Key in a config field's schema that marks it as no part of how a score is computed."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The expectation an occurrence is measured against, as authored, and where it came from."""

    value: Any
    origin: ReferenceOrigin


class Metric(Protocol[ConfigT]):
    """A metric: its manifest, its config model, and a scorer of one occurrence.

    Whatever the scorer's result depends on beside the config is to be told by `reference` and, where that is less than
    all spans of an occurrence, by `observed` (`ReadsOnly`): an evaluation with both unchanged counts as made before.
    """

    @property
    def manifest(self) -> Manifest:
        """The facts about this version of the metric."""

    @property
    def config_model(self) -> type[ConfigT]:
        """The pydantic model of its config."""

    def reference(self, partition: CanonicalPartition, config: ConfigT) -> Reference | None:
        """Return the expectation in force for an occurrence, valid or not; None where there is none."""

    def score(self, partition: CanonicalPartition, config: ConfigT) -> Result:
        """Score one resolved partition; never raises for what is wrong with the partition."""


def reads_content(metric: object) -> bool:
    """Tell whether a metric reads arguments, outputs, tokens or costs; one without `reads_content = False` may."""
    return getattr(metric, "reads_content", True) is not False


@runtime_checkable
class ReadsOnly(Protocol):
    """A metric that reads less of an occurrence than all of its spans."""

    def observed(self, partition: CanonicalPartition) -> Any:
        """Return what the metric reads of an occurrence, as a JSON value.

        Raises:
            ScoringError: it cannot be read.
        """


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A result with the hashes that tell whether the same evaluation was made before.

    `steps_hash` is that of what the metric reads (the steps, for `agent.step_accuracy`; else all spans), or of the
    reason why it does not apply: what a trace lacks may change without its steps changing. It is None when the steps
    cannot be collected; `reference_hash` is None when there is no expectation.
    """

    result: Result
    reference: Reference | None
    reference_hash: str | None
    steps_hash: str | None


def evaluate(metric: Metric[ConfigT], partition: CanonicalPartition, config: ConfigT) -> Evaluation:
    """Score one occurrence and fingerprint what the score depends on."""
    reference = metric.reference(partition, config)
    result = metric.score(partition, config)
    return Evaluation(
        result=result,
        reference=reference,
        reference_hash=fingerprint(reference.value) if reference else None,
        steps_hash=fingerprint({"reason": result.reason}) if result.reason else _observed_hash(metric, partition),
    )


def _observed_hash(metric: Metric[Any], partition: CanonicalPartition) -> str | None:
    if not isinstance(metric, ReadsOnly):
        return fingerprint([asdict(span) for span in partition.spans])
    try:
        return fingerprint(metric.observed(partition))
    except ScoringError:
        return None


def build_config(metric: Metric[ConfigT], values: Mapping[str, Any]) -> ConfigT:
    """Build a metric's config from plain values.

    Raises:
        ConfigError: a value is refused; the sentence names the field, what was given and what is allowed.
    """
    try:
        return metric.config_model.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "config"
        allowed = ", ".join(metric.config_model.model_fields)
        said = first["msg"].removeprefix("Value error, ")
        given = "" if first["type"] == "value_error" else f"; given {shown(first['input'])}"
        hint = f"; the fields are {allowed}" if first["type"] == "extra_forbidden" else ""
        msg = f"Config of `{metric.manifest.name}`, field `{field}`: {said}{given}{hint}."
        raise ConfigError(msg, "config") from None


def config_hash(config: BaseModel, step_policy: Mapping[str, Any] | None = None) -> str:
    """Fingerprint what of a config decides how scores are computed.

    Fields with a parameter role (run inputs and labels) are left out, so an edited annotation is no new config; the
    source's step policy is part of it (contract, section 7).
    """
    return fingerprint({"config": deciding_settings(config), "step_policy": dict(step_policy or {})})


def deciding_settings(config: BaseModel) -> dict[str, Any]:
    """Return the fields of a config that decide how scores are computed, as JSON: those `config_hash` is made of."""
    deciding = {
        name
        for name, field in type(config).model_fields.items()
        if not (isinstance(field.json_schema_extra, dict) and PARAM_ROLE in field.json_schema_extra)
    }
    return config.model_dump(mode="json", include=deciding)
