"""Raw spans before they are read: the same span delivered twice, and spans that only announce another."""

from collections.abc import Sequence

from stepacc_core.model import Gap, RawSpan

_PENDING = "pending_span"


def delivered_once(spans: Sequence[RawSpan]) -> tuple[list[RawSpan], tuple[Gap, ...]]:
    """Keep one copy of each span of a trace: the finished one, then the fullest.

    Exporters resend, and some send a span when it starts and again when it has ended.
    """
    kept: dict[str, RawSpan] = {}
    repeated: dict[str, None] = {}
    for span in spans:
        earlier = kept.get(span.span_id)
        if earlier is None:
            kept[span.span_id] = span
        else:
            repeated[span.span_id] = None
            if _fullness(span) > _fullness(earlier):
                kept[span.span_id] = span
    if not repeated:
        return list(kept.values()), ()
    detail = f"{len(repeated)} spans were delivered more than once; the fullest copy of each counts."
    return list(kept.values()), (Gap("delivered_twice", detail, tuple(repeated)),)


def _fullness(span: RawSpan) -> tuple[bool, bool, int, int, str]:
    """Order copies of one span; the last part only makes the choice the same in whatever order they arrive."""
    return (
        bool(span.end_time_unix_nano),
        bool(span.start_time_unix_nano),
        len(span.attributes) + len(span.events),
        span.end_time_unix_nano or 0,
        repr(sorted(span.attributes.items(), key=repr)),
    )


def without_placeholders(spans: Sequence[RawSpan]) -> tuple[list[RawSpan], tuple[Gap, ...]]:
    """Drop the spans that Logfire sends when a span starts, once the span itself is there."""
    ids = {span.span_id for span in spans}
    placeholders = {
        span.span_id
        for span in spans
        if span.attributes.get("logfire.span_type") == _PENDING and span.parent_span_id in ids
    }
    if not placeholders:
        return list(spans), ()
    detail = f"{len(placeholders)} spans only announce the start of another; they were left out."
    kept = [span for span in spans if span.span_id not in placeholders]
    return kept, (Gap("placeholder_spans", detail, tuple(sorted(placeholders))),)
