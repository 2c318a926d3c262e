"""ATIF, the Agent Trajectory Interchange Format of the Harbor project (versions 1.x): one trajectory a document.

| trajectory | spans, in OpenTelemetry GenAI attributes |
|---|---|
| the trajectory, `agent` | the root, `invoke_agent`; `session_id` is the session, `extra` the attribute `metadata` |
| a step of `source: agent` | `chat`, with its message and calls; none where `llm_call_count` is 0 |
| `tool_calls[]` | `execute_tool`, with the `observation.results[]` of the same call id as result |
| `subagent_trajectories[]` | `invoke_agent` below the call whose result refers to it, else below the root |

Steps marked `is_copied_context` were taken by another trajectory and are left out; user and system steps are no spans.

The trace id is `trajectory_id`, else `session_id`, with a hash behind it where the trajectory continues another one.

The format orders steps by number and may give no times. Each span therefore starts at its step's timestamp, but at
least one nanosecond after the span before it; without any timestamp the times count from 1970, and say the order only.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stepacc_core.errors import ReadError
from stepacc_core.exports.fields import (
    BAD,
    bad_record,
    capitalised,
    first,
    moved,
    nanoseconds,
    optional_id,
    part,
    records,
)
from stepacc_core.model import RawSpan
from stepacc_core.otlp_fields import Times, read_times, span_time_error

_STEP = (("model_name", "gen_ai.request.model"),)
_METRICS = (
    ("prompt_tokens", "gen_ai.usage.input_tokens"),
    ("completion_tokens", "gen_ai.usage.output_tokens"),
    ("cost_usd", "gen_ai.usage.cost"),
)
_CALL = (
    ("function_name", "gen_ai.tool.name"),
    ("tool_call_id", "gen_ai.tool.call.id"),
    ("arguments", "gen_ai.tool.call.arguments"),
)
_VERSION = "ATIF-v"
_KNOWN = "ATIF-v1."
_DEEPEST = 50
"""Levels of agents below agents that are read."""


def recognises(document: Any) -> bool:
    """Tell whether a document is a trajectory."""
    return isinstance(document, Mapping) and str(document.get("schema_version")).startswith(_VERSION)


def read(where: str, document: Any) -> Iterator[RawSpan | ReadError]:
    """Yield the spans of a trajectory in the order of its steps, and errors in the place of bad steps."""
    try:
        trajectory = _Trajectory(where, _checked(document), _trace_id(document))
    except BAD as error:
        yield bad_record(where, "trajectory", document, error)
    else:
        yield from trajectory.spans(document, None, 0)


def _checked(document: Any) -> str:
    """Return the version of a trajectory.

    Raises:
        ValueError: it is none, or of a version that is not known.
    """
    if not isinstance(document, Mapping):
        msg = "it is no object"
        raise TypeError(msg)
    version = str(document.get("schema_version"))
    if not version.startswith(_KNOWN):
        msg = f"its schema_version is {version!r}; versions 1.x can be read, written as 'ATIF-v1.7'"
        raise ValueError(msg)
    return version


def _steps(document: Mapping[str, Any]) -> list[Any]:
    steps = document.get("steps")
    if not isinstance(steps, list):
        msg = "it has no list of steps"
        raise TypeError(msg)
    return steps


def _trace_id(document: Mapping[str, Any]) -> str:
    own = optional_id(document, "trajectory_id")
    if own is not None:
        return own
    session_id = optional_id(document, "session_id")
    steps = _steps(document)
    new = [step for step in steps if not _is_copied(step)]
    if session_id is not None and len(new) == len(steps):
        return session_id
    begin = json.dumps([session_id, part(document, "agent"), new[:1]], sort_keys=True, default=str)
    digest = hashlib.sha256(begin.encode("utf-8", "replace")).hexdigest()[:32]
    return f"{session_id}:{digest}" if session_id else digest


def _is_copied(step: Any) -> bool:
    return isinstance(step, Mapping) and step.get("is_copied_context") is True


def _times(step: Any) -> Times:
    return read_times(step.get("timestamp") if isinstance(step, Mapping) else None, None, nanoseconds)


@dataclass(slots=True)
class _Trajectory:
    """A trajectory on its way to spans: what they share, and the clock that keeps them in order."""

    where: str
    version: str
    trace_id: str
    clock: int = 0
    agents: int = 0

    def spans(self, document: Mapping[str, Any], parent: str | None, depth: int) -> Iterator[RawSpan | ReadError]:
        """Yield the spans of a trajectory, or of one embedded in it, below a parent."""
        prefix = "" if parent is None else f"{optional_id(document, 'trajectory_id') or f'agent-{self.agents}'}/"
        self.agents += 1
        subagents = {
            optional_id(each, "trajectory_id"): each for each in records(document.get("subagent_trajectories"))
        }
        root_id = f"{prefix}root"
        try:
            steps = [step for step in _steps(document) if not _is_copied(step)]
            yield self._root(root_id, document, steps, parent)
        except BAD as error:
            yield bad_record(self.where, "trajectory", document, error)
            return
        for number, step in enumerate(steps, start=1):
            place = step.get("step_id", number) if isinstance(step, Mapping) else number
            try:
                made = list(self._step(f"{prefix}step-{place}", step, document, root_id))
            except BAD as error:
                yield bad_record(f"{self.where}, step {place}", "step", step, error)
                continue
            if made and (problems := _times(step).problems):
                yield span_time_error(f"{capitalised(self.where)}, step {place}", "step", made[0][0].name, problems)
            for span, refers_to in made:
                yield span
                for each in refers_to:
                    inner = subagents.pop(each, None)
                    if inner is not None and depth < _DEEPEST:
                        yield from self.spans(inner, span.span_id, depth + 1)
        for inner in subagents.values():
            if depth < _DEEPEST:
                yield from self.spans(inner, root_id, depth + 1)

    def _root(self, span_id: str, document: Mapping[str, Any], steps: list[Any], parent: str | None) -> RawSpan:
        agent = part(document, "agent")
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            **moved(agent, (("name", "gen_ai.agent.name"), ("model_name", "gen_ai.request.model"))),
            **moved(document, (("session_id", "session.id"), ("extra", "metadata"))),
        }
        answers = [s for s in steps if isinstance(s, Mapping) and s.get("source") == "agent" and s.get("message")]
        if answers:
            attributes["gen_ai.output.messages"] = [_message(answers[-1], with_calls=False)]
        timed: Mapping[str, Any] = next((step for step in steps if _times(step).start), {})
        return self._span(span_id, f"invoke_agent {agent.get('name', '')}".strip(), timed, parent, attributes)

    def _step(
        self, span_id: str, step: Any, document: Mapping[str, Any], root_id: str
    ) -> Iterator[tuple[RawSpan, tuple[str, ...]]]:
        """Yield the spans of one step, each with the ids of the trajectories that it refers to."""
        if not isinstance(step, Mapping):
            msg = "it is no object"
            raise TypeError(msg)
        if step.get("source") != "agent":
            return
        calls = records(step.get("tool_calls"))
        if step.get("llm_call_count") != 0:
            model = first(step, "model_name") or first(part(document, "agent"), "model_name")
            attributes = {
                "gen_ai.operation.name": "chat",
                "gen_ai.output.messages": [_message(step, with_calls=True)],
                **({} if model is None else {"gen_ai.request.model": model}),
                **moved(step, _STEP),
                **moved(part(step, "metrics"), _METRICS),
            }
            yield self._span(span_id, f"chat {model or ''}".strip(), step, root_id, attributes), ()
        results = records(part(step, "observation").get("results"))
        for place, call in enumerate(calls, start=1):
            given = [result for result in results if _answers(result, call)]
            yield self._call(f"{span_id}/call-{place}", step, call, given, root_id), _refers_to(given)

    def _call(
        self,
        span_id: str,
        step: Mapping[str, Any],
        call: Mapping[str, Any],
        given: list[Mapping[str, Any]],
        root_id: str,
    ) -> RawSpan:
        attributes = {"gen_ai.operation.name": "execute_tool", **moved(call, _CALL)}
        if given:
            attributes |= moved(given[0], (("content", "gen_ai.tool.call.result"),))
        return self._span(span_id, f"execute_tool {call.get('function_name', '')}".strip(), step, root_id, attributes)

    def _span(
        self, span_id: str, name: str, step: Mapping[str, Any], parent: str | None, attributes: Mapping[str, Any]
    ) -> RawSpan:
        self.clock = max(self.clock + 1, _times(step).start or 0)
        return RawSpan(
            trace_id=self.trace_id,
            span_id=span_id,
            name=name,
            parent_span_id=parent,
            start_time_unix_nano=self.clock,
            attributes=attributes,
            scope_name="atif",
            scope_version=self.version,
        )


def _answers(result: Mapping[str, Any], call: Mapping[str, Any]) -> bool:
    call_id = call.get("tool_call_id")
    return call_id is not None and result.get("source_call_id") == call_id


def _refers_to(results: list[Mapping[str, Any]]) -> tuple[str, ...]:
    references = [ref for result in results for ref in records(result.get("subagent_trajectory_ref"))]
    ids = [optional_id(reference, "trajectory_id") for reference in references]
    return tuple(each for each in ids if each is not None)


def _message(step: Mapping[str, Any], *, with_calls: bool) -> dict[str, Any]:
    content = step.get("message")
    texts = [content] if isinstance(content, str) else [item.get("text") for item in records(content)]
    parts: list[dict[str, Any]] = [
        {"type": "text", "content": text} for text in texts if isinstance(text, str) and text
    ]
    for call in records(step.get("tool_calls")) if with_calls else ():
        names = (("tool_call_id", "id"), ("function_name", "name"), ("arguments", "arguments"))
        parts.append({"type": "tool_call", **moved(call, names)})
    return {"role": "assistant", "parts": parts}
