"""Capturing the OpenTelemetry spans of the code under test, in memory."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, overload

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import ProxyTracerProvider, SpanContext, format_span_id, format_trace_id

from stepacc_core.errors import ConfigError
from stepacc_core.model import CanonicalPartition, RawEvent, RawSpan, SpanStatus, Step
from stepacc_core.policy import StepPolicy, apply_policy
from stepacc_core.reading import ReadSettings, read_traces, session_partition
from stepacc_core.steps import collect_steps, not_applicable_reason

_SESSION = "captured"
_NO_SPANS = (
    "No span was captured: the code under test made none, or not with the tracer provider that was the global one when "
    "the fixture began."
)


class CapturedSteps(Sequence[Step]):
    """The steps of all spans that have ended since the capture began, in the order of execution.

    It is read anew each time it is looked at, so it may be asked in the middle of a test. `spans` holds the raw spans.
    """

    def __init__(self, settings: ReadSettings, policy: StepPolicy) -> None:
        self.spans: list[RawSpan] = []
        self._settings = settings
        self._policy = policy

    @property
    def partition(self) -> CanonicalPartition:
        """All captured traces as one partition, as those of a session."""
        traces = read_traces(self.spans, self._settings)
        return apply_policy(session_partition(_SESSION, traces), self._policy)

    @property
    def notes(self) -> list[str]:
        """What to know beside the steps: that nothing was captured, or why steps may lack."""
        if not self.spans:
            return [_NO_SPANS]
        partition = self.partition
        reason = not_applicable_reason(partition)
        lacking = [f"Of {len(self.spans)} captured spans none tells a step ({reason})."] if reason else []
        return lacking + [f"{gap.kind}: {gap.detail}" for gap in partition.gaps]

    def clear(self) -> None:
        """Forget what was captured so far."""
        self.spans.clear()

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        """Return one of the steps, or some."""
        return collect_steps(self.partition)[index]

    def __len__(self) -> int:
        """Count the steps."""
        return len(collect_steps(self.partition))

    def __iter__(self) -> Iterator[Step]:
        """Go through the steps, reading them once."""
        return iter(collect_steps(self.partition))

    def __repr__(self) -> str:
        """Show the names of the steps."""
        return f"CapturedSteps({[step.name for step in self]!r})"


class _Forwarding(SpanProcessor):
    """Hands ended spans to whatever captures them; there is one for each provider, for a processor stays for good."""

    def __init__(self) -> None:
        self.captures: list[CapturedSteps] = []

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span that ended."""
        if self.captures and (context := span.get_span_context()):
            raw = _raw_span(span, context)
            for capture in self.captures:
                capture.spans.append(raw)


@contextmanager
def capturing(settings: ReadSettings, policy: StepPolicy) -> Iterator[CapturedSteps]:
    """Capture the spans that end meanwhile.

    They are taken from the global tracer provider; where none is set, one of the SDK is.

    Raises:
        ConfigError: the global provider is none that processors can be added to.
    """
    capture = CapturedSteps(settings, policy)
    processor = _processor()
    processor.captures.append(capture)
    try:
        yield capture
    finally:
        processor.captures.remove(capture)


def _processor() -> _Forwarding:
    """Return the processor of the global provider, and add it first where that has none."""
    provider: Any = trace.get_tracer_provider()
    if isinstance(provider, ProxyTracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    if not hasattr(provider, "add_span_processor"):
        msg = (
            f"The global tracer provider is a {type(provider).__qualname__}, to which no span processor can be added; "
            "set one of the OpenTelemetry SDK, or none, and the fixture sets it."
        )
        raise ConfigError(msg)
    found: _Forwarding | None = next((known for of, known in _KNOWN if of is provider), None)
    if found is None:
        found = _Forwarding()
        provider.add_span_processor(found)
        _KNOWN.append((provider, found))
    return found


_KNOWN: list[tuple[Any, _Forwarding]] = []
"""Providers, by identity, with the processor that was added to each."""

_STATUSES: Mapping[str, SpanStatus] = {"OK": "OK", "ERROR": "ERROR"}


def _raw_span(span: ReadableSpan, context: SpanContext) -> RawSpan:
    scope = span.instrumentation_scope
    return RawSpan(
        trace_id=format_trace_id(context.trace_id),
        span_id=format_span_id(context.span_id),
        name=span.name,
        parent_span_id=format_span_id(span.parent.span_id) if span.parent else None,
        start_time_unix_nano=span.start_time,
        end_time_unix_nano=span.end_time,
        status=_STATUSES.get(span.status.status_code.name, "UNSET"),
        status_message=span.status.description or "",
        attributes=_attributes(span.attributes),
        events=tuple(RawEvent(event.name, event.timestamp, _attributes(event.attributes)) for event in span.events),
        resource=_attributes(span.resource.attributes),
        scope_name=scope.name if scope else "",
        scope_version=(scope.version if scope else None) or "",
    )


def _attributes(given: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: _plain(value) for name, value in (given or {}).items()}


def _plain(value: Any) -> Any:
    """Return an attribute value as OTLP/JSON would bring it."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case list() | tuple():
            return [_plain(item) for item in value]
        case Mapping():
            return _attributes(value)
        case _:
            return value
