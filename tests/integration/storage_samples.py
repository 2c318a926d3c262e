"""Spans and traces the storage tests are made of."""

from typing import Any

from stepacc_core.model import CanonicalSpan, CanonicalTrace, Gap, RawSpan, ToolCall
from stepacc_dagster.windows import Window, window_of

SOURCE = "support"
MONDAY = window_of("2025-11-03", "daily")
TUESDAY = window_of("2025-11-04", "daily")
SUNDAY = window_of("2025-11-02", "daily")
HOUR = 3_600_000_000_000


def raw(trace_id: str, span_id: str, start: int | None, **fields: Any) -> RawSpan:
    """Return a raw span that lasts 5 ns."""
    end = start + 5 if start else None
    return RawSpan(trace_id, span_id, f"span {span_id}", start_time_unix_nano=start, end_time_unix_nano=end, **fields)


def trace(trace_id: str, window: Window = MONDAY, *, hour: int = 9, tools: str = "ab", **fields: Any) -> CanonicalTrace:
    """Return a trace of a root agent with one tool call per letter, an hour into its window."""
    start = window.start_ns + hour * HOUR
    root = CanonicalSpan(
        trace_id, "root", "AGENT", "agent", None, start, start + 100, "OK",
        agent_name="helper", output={"answer": "42 €"}, input_tokens=7, cost_usd=0.25,
    )  # fmt: skip
    calls = tuple(
        CanonicalSpan(
            trace_id, f"s{place}", "TOOL", f"call {tool}", "root", start + place, start + place + 1, "UNSET",
            tool_name=tool, tool_full_name=f"ns.{tool}", tool_arguments={"n": place, "deep": [1.5, None]},
            tool_call_id=f"c{place}", tool_calls=(ToolCall(tool, f"c{place}", {"q": "x"}),) if place == 1 else (),
        )
        for place, tool in enumerate(tools, start=1)
    )  # fmt: skip
    values: dict[str, Any] = {"session_id": None, "task_id": None, "gaps": ()}
    values.update(fields)
    return CanonicalTrace(
        trace_id=trace_id,
        root_span_id="root",
        start_time_unix_nano=start,
        end_time_unix_nano=start + 100,
        spans=(root, *calls),
        **values,
    )


A_GAP = Gap("tool_name", "taken from the span's name", ("s1",))
