"""Rows of Langfuse 2 as spans with the attributes that its later versions write.

Version 2 knows three types of observation only: a model call is a GENERATION, an event an EVENT, and all else, tools
and agents alike, a SPAN. Which of the spans ran a tool is told by what LangChain's callback leaves.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from stepacc_core.conventions.values import sequence
from stepacc_core.model import RawSpan
from stepacc_dagster.stores import values
from stepacc_dagster.stores.sql import microseconds

COLUMNS_OF_TRACE = f"""
    'TRACE' AS type, id, CAST(NULL AS text) AS parent, name, {microseconds('"timestamp"')} AS started,
    CAST(NULL AS bigint) AS ended, CAST(input AS text), CAST(output AS text), CAST(metadata AS text),
    CAST(NULL AS text) AS level, CAST(NULL AS text) AS message, CAST(NULL AS text) AS model,
    CAST(NULL AS bigint) AS input_tokens, CAST(NULL AS bigint) AS output_tokens, CAST(NULL AS float8) AS cost,
    session_id, user_id
"""
"""SQL of the columns of the row of a trace, which comes first."""
COLUMNS_OF_OBSERVATION = f"""
    CAST(type AS text), id, parent_observation_id, name, {microseconds("start_time")}, {microseconds("end_time")},
    CAST(input AS text), CAST(output AS text), CAST(metadata AS text), CAST(level AS text), status_message, model,
    CAST(prompt_tokens AS bigint), CAST(completion_tokens AS bigint), CAST(calculated_total_cost AS float8),
    CAST(NULL AS text), CAST(NULL AS text)
"""
"""SQL of the same columns of an observation."""

_TYPES = {"TRACE": "span", "GENERATION": "generation", "EVENT": "event"}
_TOOL_NODE = "tools"
_PREFIX = "langfuse.observation"


def spans_of(trace_id: str, rows: Sequence[tuple[Any, ...]]) -> list[RawSpan]:
    """Return the spans of one trace.

    Args:
        trace_id: its id, which is the root span's too.
        rows: `COLUMNS_OF_TRACE`, if the trace has a row, and `COLUMNS_OF_OBSERVATION`.
    """
    names = {row[1]: row[3] or "" for row in rows if row[0] != "TRACE"}
    has_row = len(names) < len(rows)
    root_id = _free(trace_id, names) if has_row else None
    observations = [_observation(trace_id, row, root_id, names) for row in rows if row[0] != "TRACE"]
    roots = [_root(trace_id, row, root_id, observations) for row in rows if row[0] == "TRACE" and root_id is not None]
    return roots + observations


def _free(trace_id: str, taken: Mapping[str, Any]) -> str:
    """Return the id of the root: the trace's, made longer where an observation has the same."""
    return trace_id if trace_id not in taken else _free(f"{trace_id}:trace", taken)


def _root(trace_id: str, row: tuple[Any, ...], root_id: str, inside: Sequence[RawSpan]) -> RawSpan:
    _, _, _, name, written, _, given, returned, metadata, *_, session_id, user_id = row
    starts = [span.start_time_unix_nano for span in inside] + [values.nanoseconds(written)]
    ends = [span.end_time_unix_nano or span.start_time_unix_nano for span in inside]
    attributes = values.present(
        (
            (f"{_PREFIX}.type", _TYPES["TRACE"]),
            (f"{_PREFIX}.input", values.json_value(given)),
            (f"{_PREFIX}.output", values.json_value(returned)),
            ("langfuse.trace.metadata", values.json_value(metadata)),
            ("langfuse.session.id", session_id),
            ("langfuse.user.id", user_id),
        )
    )
    start, end = min(filter(None, starts), default=None), max(filter(None, ends), default=None)
    return RawSpan(trace_id, root_id, name or "", None, start, end, attributes=attributes)


def _observation(trace_id: str, row: tuple[Any, ...], root_id: str | None, names: Mapping[str, str]) -> RawSpan:
    kind, ident, parent_id, name, start, end, given, returned, metadata, level, message, model, *counts, _, _ = row
    parent = values.parent(parent_id)
    given, returned, metadata = map(values.json_value, (given, returned, metadata))
    tool = kind == "SPAN" and _ran_a_tool(given, returned, metadata, names.get(parent or "", ""))
    input_tokens, output_tokens, cost = counts
    usage = values.present((("input", input_tokens or None), ("output", output_tokens or None)))
    message_of_tool = _tool_message(returned) if tool else None
    attributes = values.present(
        (
            (f"{_PREFIX}.type", "tool" if tool else _TYPES.get(kind, "span")),
            (f"{_PREFIX}.input", given),
            (f"{_PREFIX}.output", returned),
            (f"{_PREFIX}.metadata", metadata),
            (f"{_PREFIX}.metadata.tool_call_id", message_of_tool.get("tool_call_id") if message_of_tool else None),
            (f"{_PREFIX}.level", level),
            (f"{_PREFIX}.model.name", model),
            (f"{_PREFIX}.usage_details", usage or None),
            (f"{_PREFIX}.cost_details", None if cost is None else {"total": cost}),
        )
    )
    return RawSpan(
        trace_id,
        ident,
        name or "",
        parent if parent is not None else root_id,
        values.nanoseconds(start),
        values.nanoseconds(end),
        "ERROR" if level == "ERROR" else "UNSET",
        message or "",
        attributes,
    )


def _ran_a_tool(given: Any, returned: Any, metadata: Any, parent_name: str) -> bool:
    """Tell whether a span ran a tool.

    It returned a tool message; or it was given text, as LangChain gives tools and retrievers only, and is inside the
    graph node `tools`, has the same input as an object in its metadata, or returned a hand-off with a tool message.
    """
    if _is_tool_message(returned):
        return True
    has_inputs = isinstance(_object(metadata).get("inputs"), Mapping)
    return isinstance(given, str) and (parent_name == _TOOL_NODE or has_inputs or _tool_message(returned) is not None)


def _tool_message(returned: Any) -> Mapping[str, Any] | None:
    """Return the tool message that is a span's output, which may sit in the update of a hand-off command."""
    found = _object(returned)
    inside = sequence(_object(found.get("update")).get("messages"))
    return next((_object(each) for each in (found, *inside) if _is_tool_message(each)), None)


def _is_tool_message(value: Any) -> bool:
    found = _object(value)
    return found.get("type") == "tool" and "tool_call_id" in found


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
