"""The errors of stepacc.

```
StepaccError
├── ConfigError          a metric's config or a source's setting is wrong
├── ScoringError         one occurrence cannot be scored; has a contract code
├── PartitionError       a canonical partition has a bad field
├── ReadError            a trace file or a span cannot be read
│   ├── SpanTimeError            a time of a span cannot be read; the span is there without it
│   └── UnknownConventionError   no recogniser knows the spans of a set
├── AnnotationError      an annotations file has a bad entry
├── UnknownMetricError   no metric of that name or version is registered
├── ManifestError        a manifest is not valid
├── MetricPackageError   an installed package names a metric that cannot be loaded
└── ResultError          a metric gave a result that says two things, or nothing
```

Every message is a sentence that gives the value, what is allowed and what to do. Every error
survives pickling, since runs cross processes.
"""

from enum import StrEnum


class FailureCode(StrEnum):
    """Codes of a `failed` result (contract of `agent.step_accuracy`, section 7, and those of later metrics)."""

    MISSING_EXPECTED_STEPS = "missing_expected_steps"
    INVALID_EXPECTED_STEPS = "invalid_expected_steps"
    NESTED_GROUP = "nested_group"
    GROUP_UNDER_STRICT_POSITION = "group_under_strict_position"
    INVALID_ANNOTATION_JSON = "invalid_annotation_json"
    MISSING_START_TIME = "missing_start_time"
    TOO_LARGE = "too_large"
    MISSING_REFERENCES = "missing_references"
    INVALID_REFERENCES = "invalid_references"


class StepaccError(Exception):
    """Base of all errors of stepacc."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        """Return the sentence."""
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by state, so that subclasses with other constructor arguments survive."""
        return (_rebuild, (type(self), self.args, self.__dict__.copy()))

    def __eq__(self, other: object) -> bool:
        """Two errors of one class with the same state are equal, also after pickling."""
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        """Hash by class and sentence."""
        return hash((type(self), self.message))


def _rebuild(cls: type[StepaccError], args: tuple[object, ...], state: dict[str, object]) -> StepaccError:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


class ConfigError(StepaccError):
    """A metric's config or a source's setting is wrong.

    Args:
        message: a sentence with the value given, what is allowed and what to do.
        setting: the source's setting that is to blame, as a dotted path such as `retry.max_retries`, where it is one.
    """

    def __init__(self, message: str, setting: str | None = None) -> None:
        super().__init__(message)
        self.setting = setting


class ScoringError(StepaccError):
    """One occurrence cannot be scored.

    Args:
        code: one of the contract's failure codes.
        message: a sentence with the value given, what is allowed and what to do.
    """

    def __init__(self, code: FailureCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class PartitionError(StepaccError):
    """A canonical partition has a bad field; the message names partition, span and field."""


class ReadError(StepaccError):
    """A trace file or a span cannot be read; the message names the file and line where known."""


class SpanTimeError(ReadError):
    """A time of a span cannot be read. The span itself was read, without it; the message names span and time."""


class UnknownConventionError(ReadError):
    """No recogniser knows the spans of a set."""


class AnnotationError(StepaccError):
    """An annotations file has a bad entry; the message names file and entry."""


class ManifestError(StepaccError):
    """A manifest is not valid; the message names the file and the field."""


class UnknownMetricError(StepaccError):
    """No metric of that name or version is registered; the message lists those that are.

    Args:
        message: the sentence.
        setting: `metric` or `metric_version`, whichever is unknown.
    """

    def __init__(self, message: str, setting: str = "metric") -> None:
        super().__init__(message)
        self.setting = setting


class MetricPackageError(StepaccError):
    """An installed package names a metric that cannot be loaded.

    Args:
        package: the distribution with its version, as `pip` names it.
        entry_point: name of its entry point in the group `stepacc.metrics`.
        value: what the entry point refers to.
        reason: what is wrong.
    """

    def __init__(self, package: str, entry_point: str, value: str, reason: str) -> None:
        super().__init__(
            f"Metric `{entry_point}` (`{value}`) of package {package} cannot be loaded: {reason}; mend the package, "
            "or uninstall it."
        )
        self.package = package
        self.entry_point = entry_point


class ResultError(StepaccError):
    """A metric gave a result that says two things, or nothing; the message shows what it said."""
