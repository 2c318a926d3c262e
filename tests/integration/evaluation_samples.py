"""Traces, annotations and metrics the tests of the evaluation are made of."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from stepacc_core import CanonicalPartition, Result, get_metric
from stepacc_core.metrics import Manifest, Reference
from stepacc_core.model import RawSpan
from stepacc_dagster.windows import Window, window_of

SOURCE = "support"
START = "2025-11-01"
DAYS = [f"2025-11-{day:02}" for day in range(1, 29)]
MONDAY, TUESDAY, WEDNESDAY = "2025-11-03", "2025-11-04", "2025-11-05"
_HOUR = 3_600_000_000_000


def day(key: str) -> Window:
    """Return the window of a day."""
    return window_of(key, "daily")


def agent_trace(
    trace_id: str,
    key: str,
    *tools: str,
    hour: int = 9,
    task: str | None = None,
    session: str | None = None,
) -> list[RawSpan]:
    """Return the spans of an agent that called tools, a second apart, in OpenTelemetry's GenAI conventions."""
    start = day(key).start_ns + hour * _HOUR
    identity = {
        name: value for name, value in (("stepacc.task_id", task), ("gen_ai.conversation.id", session)) if value
    }
    root = _span(
        trace_id, "root", None, start, "invoke_agent helper",
        **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper", **identity},
    )  # fmt: skip
    calls = [
        tool_span(trace_id, f"s{place}", tool, start + place * 1_000_000_000) for place, tool in enumerate(tools, 1)
    ]
    return [root, *calls]


def tool_span(trace_id: str, span_id: str, tool: str, start: int | None, parent: str | None = "root") -> RawSpan:
    """Return the span of one tool call."""
    return _span(
        trace_id, span_id, parent, start, f"execute_tool {tool}",
        **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool},
    )  # fmt: skip


def chain_trace(trace_id: str, key: str) -> list[RawSpan]:
    """Return a trace in which nothing is a tool, an agent or a model."""
    return [_span(trace_id, "root", None, day(key).start_ns + _HOUR, "http", **{"openinference.span.kind": "CHAIN"})]


def _span(trace_id: str, span_id: str, parent: str | None, start: int | None, name: str, **attributes: Any) -> RawSpan:
    end = start + 1_000_000 if start else None
    return RawSpan(trace_id, span_id, name, parent, start, end, "OK", attributes=attributes)


class ToyConfig(BaseModel):
    """A config without fields."""


class ToyMetric:
    """A metric of somebody's own: what it says of an occurrence is a function, and it needs no expectation."""

    def __init__(self, name: str, scorer: Callable[[CanonicalPartition], Result], **execution: Any) -> None:
        pattern = get_metric("agent.step_accuracy").manifest.model_dump(mode="json")
        changed = {"name": name, "version": "0.1.0", "execution": {**pattern["execution"], **execution}}
        self.manifest = Manifest.model_validate({**pattern, **changed, "config_schema": ToyConfig.model_json_schema()})
        self.config_model = ToyConfig
        self._scorer = scorer

    def reference(self, partition: CanonicalPartition, config: ToyConfig) -> Reference | None:  # noqa: ARG002 (protocol)
        """Return no expectation."""
        return None

    def score(self, partition: CanonicalPartition, config: ToyConfig) -> Result:  # noqa: ARG002 (protocol)
        """Score by the function."""
        return self._scorer(partition)
