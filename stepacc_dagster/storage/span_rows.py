"""A canonical span as a row of `spans`, and the spans of a trace back."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from itertools import repeat
from typing import Any

from stepacc_core.model import CanonicalSpan, Gap, ToolCall
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import ArrayType, ColumnType

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

_CONTENT = frozenset({"tool_arguments", "output", "input_tokens", "output_tokens", "cost_usd"})
_ARRAYS: dict[ColumnType, ArrayType] = {
    "text": "text[]",
    "int4": "int4[]",
    "int8": "int8[]",
    "float8": "float8[]",
    "bool": "bool[]",
    "jsonb": "jsonb[]",
}
_FIELDS = tuple(field.name for field in fields(CanonicalSpan))
_NOTHING = repeat(None)


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


SPANS_PER_ROW = 256
"""Spans of a trace that are read as one row: what a row holds is in memory at once, here and in the server."""


def spans_query(traces: str, *, content: bool) -> str:
    """Return a query for the spans of traces in rows of many: `chunk` and an array for each column, spans in order.

    A row for each span would cost more to pass on than all that is done with it.

    Args:
        traces: condition on the columns of `spans` that chooses one trace.
        content: whether arguments, outputs, tokens and costs are wanted; they are left out, and not read, otherwise.
    """
    arrays = ", ".join(f"array_agg({name} ORDER BY position)" for name, _ in _columns(content=content))
    return f"""
        SELECT position / {SPANS_PER_ROW} AS chunk, {arrays}
        FROM stepacc.spans WHERE {traces} GROUP BY chunk ORDER BY chunk
    """  # noqa: S608 (names of this module, and the caller's condition)


def spans_types(*, content: bool) -> list[ColumnType | ArrayType]:
    """Return the types of the columns of `spans_query`."""
    return ["int4", *(_ARRAYS[kind] for _, kind in _columns(content=content))]


def spans_of(trace_id: str, row: Sequence[Any], *, content: bool) -> Iterator[CanonicalSpan]:
    """Yield the spans of a row of `spans_query`, of which `chunk` may be None: a trace without spans."""
    chunk, *arrays = row
    if chunk is None:
        return iter(())
    values: dict[str, Iterable[Any]] = dict(zip([name for name, _ in _columns(content=content)], arrays, strict=True))
    values["tool_calls"] = map(_calls, values["tool_calls"])
    for name in ("tool_arguments", "output") if content else ():
        values[name] = map(_decoded, values[name])
    values["trace_id"] = repeat(trace_id)
    return map(CanonicalSpan, *(values.get(name, _NOTHING) for name in _FIELDS))


def gaps_jsonb(gaps: Iterable[Gap]) -> bytes:
    """Return gaps as the column `gaps` holds them."""
    return encode.jsonb([{"kind": gap.kind, "detail": gap.detail, "span_ids": gap.span_ids} for gap in gaps])


def gaps_of(value: bytes) -> tuple[Gap, ...]:
    """Return the gaps of the column `gaps`."""
    return tuple(Gap(gap["kind"], gap["detail"], tuple(gap["span_ids"])) for gap in encode.decode(value))


@cache
def _columns(*, content: bool) -> tuple[tuple[str, ColumnType], ...]:
    return tuple(
        (name, kind) for name, kind in SPAN_COLUMNS if name != "position" and (content or name not in _CONTENT)
    )


def _calls(value: bytes | None) -> tuple[ToolCall, ...]:
    if value is None:
        return ()
    return tuple([ToolCall(c["name"], c["id"], c["arguments"], c["full_name"]) for c in encode.decode(value)])


def _decoded(value: bytes | None) -> Any:
    return None if value is None else encode.decode(value)


def _call(call: ToolCall) -> dict[str, Any]:
    return {"name": call.name, "id": call.id, "arguments": call.arguments, "full_name": call.full_name}
