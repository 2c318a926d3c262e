"""One run of a task as it counts for a suggestion: its steps, and which of them ran at the same time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stepacc_core.model import CanonicalPartition, CanonicalSpan, Step
from stepacc_core.names import fold
from stepacc_core.steps import collect_steps

Key = tuple[str, str]
"""What makes two observed steps the same: the kind, and the name as it is compared."""

_SpanId = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Run:
    """One good run of a task.

    `parallel` holds pairs of places in `steps`, the earlier first, whose steps ran at the same time: their spans
    overlap and none lies below the other, or one completion asked for both.
    """

    steps: tuple[Step, ...]
    parallel: frozenset[tuple[int, int]] = frozenset()


def key_of(step: Step) -> Key:
    """Return what makes a step the same as another."""
    return (step.kind, step.name if step.kind == "AGENT" else fold(step.name))


def run_of(partition: CanonicalPartition) -> Run:
    """Return the run that a trace or a session is.

    Raises:
        ScoringError: `missing_start_time`.
    """
    steps = collect_steps(partition)
    spans = {(span.trace_id, span.span_id): span for span in partition.spans}
    return Run(steps, frozenset(_parallel(steps, spans)))


def _parallel(steps: tuple[Step, ...], spans: Mapping[tuple[str, str], CanonicalSpan]) -> Iterator[tuple[int, int]]:
    found = [spans[step.trace_id or "", step.span_id or ""] for step in steps]
    ends = [span.end_time_unix_nano or 0 for span in found]
    for first, span in enumerate(found):
        for second in range(first + 1, len(found)):
            other = found[second]
            if other is span:  # two calls of one completion
                yield first, second
            elif (other.start_time_unix_nano or 0) >= ends[first]:
                break
            elif steps[second].origin == "span" and not _below(other, span, spans):
                yield first, second


def _below(span: CanonicalSpan, above: CanonicalSpan, spans: Mapping[tuple[str, str], CanonicalSpan]) -> bool:
    """Tell whether a span lies below another one; a cycle of parents ends where it began."""
    seen: set[str] = set()
    while span.parent_span_id and span.parent_span_id not in seen:
        if span.parent_span_id == above.span_id and span.trace_id == above.trace_id:
            return True
        seen.add(span.parent_span_id)
        parent = spans.get((span.trace_id, span.parent_span_id))
        if parent is None:
            return False
        span = parent
    return False
