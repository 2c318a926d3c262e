"""Log records that belong to spans: older GenAI instrumentations put the content of completions there.

They come as events with the key of their span. Within a set of files they are joined to their spans at once. Where
spans and log records are landed as they come, in any order and more than once, a record is carried as a span of its own
below its span, and joined when the trace is read: so it waits for its span without being lost, and neither overwrites
the other.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from stepacc_core.model import Gap, RawEvent, RawSpan

SpanKey = tuple[str, str]
"""Trace id and span id."""

LogEvent = tuple[SpanKey, RawEvent]
"""A log record as an event, with the key of its span."""

CARRIES = "stepacc.log_record"
"""The attribute that marks a span which only carries a log record."""

_GENAI = "gen_ai."
_DIGITS = 8


def join_logs(spans: Iterable[RawSpan], events: Iterable[LogEvent]) -> Iterator[RawSpan]:
    """Add log events to the spans they belong to, each equal event once; spans without any pass unchanged."""
    by_span: dict[SpanKey, list[RawEvent]] = {}
    for key, event in events:
        kept = by_span.setdefault(key, [])
        if event not in kept:
            kept.append(event)
    for span in spans:
        yield _with_events(span, by_span.get((span.trace_id, span.span_id), ()))


def is_kept(event: RawEvent) -> bool:
    """Tell whether a log event says something of an agent: all others are the application's own log."""
    return event.name.startswith(_GENAI)


def carrier(log: LogEvent) -> RawSpan:
    """Make the span that carries a log event; equal events of one span give the same span id."""
    (trace_id, span_id), event = log
    content = json.dumps([event.name, event.time_unix_nano, event.attributes], sort_keys=True, default=str)
    digest = hashlib.blake2b(content.encode("utf-8", "replace"), digest_size=_DIGITS).hexdigest()
    return RawSpan(
        trace_id=trace_id,
        span_id=f"{span_id}/log/{digest}",
        name=event.name,
        parent_span_id=span_id,
        start_time_unix_nano=event.time_unix_nano,
        end_time_unix_nano=event.time_unix_nano,
        attributes={CARRIES: True},
        events=(event,),
    )


def carried_joined(spans: Sequence[RawSpan]) -> tuple[list[RawSpan], tuple[Gap, ...]]:
    """Put the log events that spans of one trace carry to the spans they belong to, in order of their times.

    Carriers go; a gap names those whose span is not in the trace.
    """
    carriers = [span for span in spans if CARRIES in span.attributes]
    if not carriers:
        return list(spans), ()
    carriers.sort(key=lambda span: (span.start_time_unix_nano or 0, span.span_id))
    by_span: dict[str, list[RawEvent]] = {}
    for each in carriers:
        by_span.setdefault(each.parent_span_id or "", []).extend(each.events)
    joined = [_with_events(span, by_span.pop(span.span_id, ())) for span in spans if CARRIES not in span.attributes]
    if not by_span:
        return joined, ()
    detail = f"Log records of {len(by_span)} spans that are not in the trace were left out."
    return joined, (Gap("log_records_without_span", detail, tuple(sorted(by_span))),)


def _with_events(span: RawSpan, events: Sequence[RawEvent]) -> RawSpan:
    added = [event for event in events if event not in span.events]
    return replace(span, events=(*span.events, *added)) if added else span
