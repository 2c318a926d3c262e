"""A canonical span as a row of `spans`, and back."""

from collections.abc import Iterable
from typing import Any

from stepacc_core.model import CanonicalSpan, Gap, ToolCall
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import ColumnType

SPAN_COLUMNS: tuple[tuple[str, ColumnType], ...] = (
    ("span_id", "text"),
    ("position", "int4"),
    ("kind", "text"),
    ("name", "text"),
    ("parent_span_id", "text"),
    ("start_time_unix_nano", "int8"),
    ("end_time_unix_nano", "int8"),
    ("status", "text"),
    ("tool_name", "text"),
    ("tool_full_name", "text"),
    ("tool_call_id", "text"),
    ("agent_name", "text"),
    ("calls_announced", "bool"),
    ("input_tokens", "int8"),
    ("output_tokens", "int8"),
    ("cost_usd", "float8"),
    ("tool_arguments", "jsonb"),
    ("tool_calls", "jsonb"),
    ("output", "jsonb"),
)
"""Columns of a span within its trace, the jsonb ones last."""


def span_row(position: int, span: CanonicalSpan) -> tuple[Any, ...]:
    """Return the values of `SPAN_COLUMNS`."""
    return (
        encode.stored_id(span.span_id),
        position,
        span.kind,
        encode.text(span.name),
        encode.optional_id(span.parent_span_id),
        encode.nanoseconds(span.start_time_unix_nano),
        encode.nanoseconds(span.end_time_unix_nano),
        span.status,
        encode.optional_text(span.tool_name),
        encode.optional_text(span.tool_full_name),
        encode.optional_text(span.tool_call_id),
        encode.optional_text(span.agent_name),
        span.calls_announced,
        encode.count(span.input_tokens),
        encode.count(span.output_tokens),
        span.cost_usd,
        encode.optional_jsonb(span.tool_arguments),
        encode.jsonb([_call(call) for call in span.tool_calls]) if span.tool_calls else None,
        encode.optional_jsonb(span.output),
    )


def span_of(trace_id: str, row: tuple[Any, ...]) -> CanonicalSpan:
    """Return the span of a row of `SPAN_COLUMNS`."""
    (
        span_id,
        _,
        kind,
        name,
        parent_span_id,
        start,
        end,
        status,
        tool_name,
        tool_full_name,
        tool_call_id,
        agent_name,
        calls_announced,
        input_tokens,
        output_tokens,
        cost_usd,
        arguments,
        calls,
        output,
    ) = row
    return CanonicalSpan(
        trace_id,
        span_id,
        kind,
        name,
        parent_span_id,
        start,
        end,
        status,
        tool_name,
        tool_full_name,
        None if arguments is None else encode.decode(arguments),
        tool_call_id,
        agent_name,
        () if calls is None else tuple(ToolCall(**call) for call in encode.decode(calls)),
        calls_announced,
        None if output is None else encode.decode(output),
        input_tokens,
        output_tokens,
        cost_usd,
    )


def gaps_jsonb(gaps: Iterable[Gap]) -> bytes:
    """Return gaps as the column `gaps` holds them."""
    return encode.jsonb([{"kind": gap.kind, "detail": gap.detail, "span_ids": gap.span_ids} for gap in gaps])


def gaps_of(value: bytes) -> tuple[Gap, ...]:
    """Return the gaps of the column `gaps`."""
    return tuple(Gap(gap["kind"], gap["detail"], tuple(gap["span_ids"])) for gap in encode.decode(value))


def _call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "id": call.id, "arguments": call.arguments, "full_name": call.full_name}
