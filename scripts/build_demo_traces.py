"""Build the demo's trace file from the recorded traces of the tests.

The recordings were made within minutes. The demo needs them on several days, so each file is moved by its own number
of whole days here; `stepacc demo` moves all of them once more, by one number of days, when it runs. Ids, names, order
and durations stay as recorded. Each gets the resource attribute `stepacc.task_id`, as an agent would send it that was
started with OTEL_RESOURCE_ATTRIBUTES=stepacc.task_id=...
"""

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "data" / "traces"
TARGET = ROOT / "stepacc_dagster" / "demo" / "data" / "traces.otlp.jsonl"

DAY = 86_400_000_000_000
TIMES = ("startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "observedTimeUnixNano")
REFUND = "refund_damaged_item"
WEATHER = "weather_and_time"
BILLING = "billing_question"
RETRY = "find_invoice"
ORDER = "order_help"

CHOSEN = (
    # (day, recorded file, task)
    (0, "openinference-langgraph/sequential", REFUND),
    (0, "pydantic-ai/sequential", REFUND),
    (0, "openinference-openai-agents/sequential_chatcompletions", REFUND),
    (1, "strands/sequential", REFUND),
    (1, "openinference-langgraph/parallel", WEATHER),
    (1, "pydantic-ai/parallel", WEATHER),
    (2, "openinference-openai-agents/parallel", WEATHER),
    (2, "openinference-openai/llm_only_parallel", WEATHER),
    (3, "pydantic-ai/session_two_traces", ORDER),
    (4, "openinference-langgraph/handoff", BILLING),
    (4, "openinference-openai-agents/agent_as_tool", BILLING),
    (4, "pydantic-ai/subagent", BILLING),
    (5, "pydantic-ai/tool_error_retry", RETRY),
    (5, "strands/tool_error_retry", RETRY),
    (5, "otel-genai-openai/experimental/llm_only_sequential", REFUND),
    (5, "otel-genai-openai/nocontent/llm_only_sequential", REFUND),
)


def moved(value: Any, nanoseconds: int) -> Any:
    """Return a copy of an OTLP document with every time moved."""
    if isinstance(value, dict):
        return {
            key: str(int(inner) + nanoseconds) if key in TIMES and int(inner) else moved(inner, nanoseconds)
            for key, inner in value.items()
        }
    return [moved(inner, nanoseconds) for inner in value] if isinstance(value, list) else value


def main() -> None:
    """Write the demo's trace file."""
    lines: list[str] = []
    for day, name, task in CHOSEN:
        for line in (RECORDED / f"{name}.otlp.jsonl").read_text().splitlines():
            document = moved(json.loads(line), day * DAY)
            for resource_spans in document["resourceSpans"]:
                attributes = resource_spans.setdefault("resource", {}).setdefault("attributes", [])
                attributes.append({"key": "stepacc.task_id", "value": {"stringValue": task}})
            lines.append(json.dumps(document, separators=(",", ":"), ensure_ascii=False))
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(lines) + "\n")
    print(f"{TARGET.relative_to(ROOT)}: {len(lines)} lines, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
