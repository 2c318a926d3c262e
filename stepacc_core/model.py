"""The canonical model: small frozen types that readers produce and metrics consume.

Times are integers, nanoseconds since the Unix epoch, and are never rounded: they decide the order
of steps. Everything here is plain data; `stepacc_core.partition_json` loads and dumps it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, with_config

from stepacc_core.errors import ConfigError, ResultError
from stepacc_core.names import StepKind
from stepacc_core.shown import shown

SpanKind = Literal[
    "TOOL",
    "AGENT",
    "LLM",
    "CHAIN",
    "RETRIEVER",
    "EMBEDDING",
    "RERANKER",
    "GUARDRAIL",
    "EVALUATOR",
    "PROMPT",
    "UNKNOWN",
]
SpanStatus = Literal["OK", "ERROR", "UNSET"]
PartitionType = Literal["trace", "session"]
NotApplicableReason = Literal["no_required_kinds", "content_not_recorded"]

UnixNano = Annotated[int, Field(ge=0)]
"""Nanoseconds since the Unix epoch; 0 is treated as missing."""

_AS_WRITTEN = with_config(ConfigDict(extra="forbid", strict=True))
"""How pydantic loads these types: unknown fields and fields of another type are refused, nothing is converted."""

_NO_ATTRIBUTES: Mapping[str, Any] = {}
_STEP_KINDS = get_args(StepKind)
_BESIDE = {"scored": "score", "failed": "error", "not_applicable": "reason"}
"""What a result of each status has beside it."""


@dataclass(frozen=True, slots=True)
class RawEvent:
    """A span event, or a log record joined to its span; a log's body is under `body` in `attributes`."""

    name: str
    time_unix_nano: int | None = None
    attributes: Mapping[str, Any] = field(default_factory=lambda: _NO_ATTRIBUTES)


@dataclass(frozen=True, slots=True)
class RawSpan:
    """A span as a producer wrote it, before any convention was applied.

    Ids are lower-case hex, or whatever text the store uses. `parent_span_id` is None for a span without a parent
    (null, empty and all zeros were already made None). Attribute values are JSON values.
    """

    trace_id: str
    span_id: str
    name: str
    parent_span_id: str | None = None
    start_time_unix_nano: int | None = None
    end_time_unix_nano: int | None = None
    status: SpanStatus = "UNSET"
    status_message: str = ""
    attributes: Mapping[str, Any] = field(default_factory=lambda: _NO_ATTRIBUTES)
    events: tuple[RawEvent, ...] = ()
    resource: Mapping[str, Any] = field(default_factory=lambda: _NO_ATTRIBUTES)
    scope_name: str = ""
    scope_version: str = ""


@_AS_WRITTEN
@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call embedded in an LLM completion. `arguments` is parsed where it parses, else text."""

    name: str
    id: str | None = None
    arguments: Any = None
    full_name: str | None = None


@_AS_WRITTEN
@dataclass(frozen=True, slots=True)
class CanonicalSpan:
    """One span in canonical form (`canonical_partition_v1`).

    `tool_name` is bare; `tool_full_name` keeps what the producer wrote where it differs. `tool_calls` are those of the
    completion, in its order. `calls_announced` is true for an LLM span that finished by asking for tools whose calls
    were not recorded (content capture off), and for an AGENT span of a producer that records neither models nor tools.
    """

    trace_id: str
    span_id: str
    kind: SpanKind
    name: str
    parent_span_id: str | None = None
    start_time_unix_nano: UnixNano | None = None
    end_time_unix_nano: UnixNano | None = None
    status: SpanStatus = "UNSET"
    tool_name: str | None = None
    tool_full_name: str | None = None
    tool_arguments: Any = None
    tool_call_id: str | None = None
    agent_name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    calls_announced: bool = False
    output: Any = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@_AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Gap:
    """Something a reader had to assume, or could not know, with the spans it concerns."""

    kind: str
    detail: str
    span_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CanonicalTrace:
    """All spans of one trace in canonical form, cleaned, with what identifies the trace.

    `start_time_unix_nano` is that of the earliest timed span, None when no span is timed. `root_span_id` is None when
    the trace has no root (contract, section 3).
    """

    trace_id: str
    session_id: str | None
    task_id: str | None
    root_span_id: str | None
    start_time_unix_nano: int | None
    end_time_unix_nano: int | None
    spans: tuple[CanonicalSpan, ...]
    gaps: tuple[Gap, ...] = ()


@_AS_WRITTEN
@dataclass(frozen=True, slots=True)
class AnnotationRef:
    """The annotation revision that set the expectation of a partition."""

    id: int
    revision: int


@_AS_WRITTEN
@dataclass(frozen=True, slots=True)
class CanonicalPartition:
    """One trace or one session, resolved for scoring (`canonical_partition_v1`).

    `expected_steps` and `reference_trajectories` are the columns of the annotation keys of these names: native
    values, JSON text, or None where nobody annotated. A loader fills the column of the key that the metric reads, and
    `annotation` is the revision of that key. They are kept as given: whether one is valid is the metric's to say, so
    that one bad annotation fails one occurrence.
    """

    partition_type: PartitionType
    partition_id: str
    session_id: str | None = None
    task_id: str | None = None
    expected_steps: Any = None
    annotation: AnnotationRef | None = None
    spans: tuple[CanonicalSpan, ...] = ()
    gaps: tuple[Gap, ...] = ()
    reference_trajectories: Any = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step an agent took.

    `kind` is `TOOL` for a tool-derived name (a TOOL span or an embedded call) and `AGENT` for an agent's; it decides
    how the name is compared. `origin` tells a step read from a span from one read out of a completion. `output` is what
    a tool gave back, None where it was not recorded.

    Raises:
        ConfigError: there is no such kind; any other word would silently be compared as a tool's name.
    """

    name: str
    kind: StepKind = "TOOL"
    origin: Literal["span", "completion"] = "span"
    full_name: str | None = None
    arguments: Any = None
    call_id: str | None = None
    trace_id: str | None = None
    span_id: str | None = None
    status: SpanStatus = "UNSET"
    output: Any = None

    def __post_init__(self) -> None:
        """Refuse a kind that does not exist."""
        if self.kind not in _STEP_KINDS:
            msg = f"The step {shown(self.name)} is of the kind {shown(self.kind)}; use 'TOOL' or 'AGENT'."
            raise ConfigError(msg)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an occurrence could not be scored: a code and a sentence.

    The codes of `agent.step_accuracy` are those of `FailureCode`; another metric has codes of its own.
    """

    code: str
    message: str

    def __str__(self) -> str:
        """Return the sentence."""
        return self.message


Status = Literal["scored", "failed", "not_applicable"]


@dataclass(frozen=True, slots=True)
class Member:
    """What one member of a metric family says of an occurrence: one row, under its own metric name.

    `name` is one of those in the manifest's `family`, such as `trajectory_match.exact`. The other fields follow the
    rules of `Result`.

    Raises:
        ResultError: as for `Result`.
    """

    name: str
    status: Status
    score: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    error: Failure | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        """Refuse a member that says two things, or nothing."""
        _refuse_two_things(self)

    @property
    def code(self) -> str | None:
        """The failure code, or None when the member did not fail."""
        return self.error.code if self.error else None


@dataclass(frozen=True, slots=True)
class Result:
    """What a metric says of one occurrence (contract of `agent.step_accuracy`, section 7).

    `score` is a float in [0, 1] only when `status` is `scored`. `error` is set only when it is `failed`, `reason`
    only when it is `not_applicable`. `metadata` is a plain, JSON-able dict; equal inputs give byte-equal metadata.

    `family` holds the members of a metric that emits a family, in the order of its manifest; it is empty for any other
    metric. The result then has what belongs to all members, and its `score` is that of the member the manifest names
    as `headline`: members are never blended into one number.

    Raises:
        ResultError: the status does not go with what is set beside it, or the score is no number. A score out of range
            is kept, for a check to show.
    """

    status: Status
    score: float | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    error: Failure | None = None
    reason: str | None = None
    family: tuple[Member, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a result that says two things, or nothing."""
        _refuse_two_things(self)

    @property
    def code(self) -> str | None:
        """The failure code, or None when the occurrence did not fail."""
        return self.error.code if self.error else None


def _refuse_two_things(result: Result | Member) -> None:
    given = {"score": result.score, "error": result.error, "reason": result.reason}
    needed = _BESIDE.get(result.status)
    if needed is None or any((value is not None) is not (name == needed) for name, value in given.items()):
        msg = (
            f"A result of status {result.status!r} has score {result.score!r}, error {result.error!r} and reason "
            f"{result.reason!r}; give `scored` a score, `failed` an error, `not_applicable` a reason, and no other."
        )
        raise ResultError(msg)
    if result.score is not None and (isinstance(result.score, bool) or not isinstance(result.score, int | float)):
        msg = f"Score {result.score!r} is no number; give a float from 0 to 1."
        raise ResultError(msg)
