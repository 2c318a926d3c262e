"""Tool calls of a crew whose instrumentation makes no span for them: taken from the messages it keeps."""

from stepacc_core.conventions.cleaning.draft import Draft
from stepacc_core.conventions.crewai import ROLE, TASKS_OUTPUT, TaskCalls, task_calls
from stepacc_core.model import CanonicalSpan, Gap, ToolCall


def calls_from_tasks(draft: Draft) -> Draft:
    """Add a tool span below an agent for each call that the messages of its task show.

    Only in a trace that has neither tool nor model spans. When a call was made is not recorded: the added spans
    stand at the start of their agent, in the order of the messages, and bear the agent span's name and id with a
    number, so that the order of steps follows.
    """
    outputs = [raw.attributes[TASKS_OUTPUT] for raw in draft.raw.values() if TASKS_OUTPUT in raw.attributes]
    if not outputs or draft.of_kind("TOOL", "LLM"):
        return draft
    agents = [span for span in draft.of_kind("AGENT") if ROLE in draft.raw[span.span_id].attributes]
    added: list[CanonicalSpan] = []
    gaps = []
    for task in (task for output in outputs for task in task_calls(output)):
        agent = next((span for span in agents if _role(draft, span) == task.role), None)
        if agent is not None:
            agents.remove(agent)
            added += _spans(agent, task)
            if task.calls:
                detail = (
                    f"{len(task.calls)} calls of {task.role!r} were read from its messages; their times are unknown."
                )
                gaps.append(Gap("calls_from_messages", detail, (agent.span_id,)))
    return draft.with_added(added, gaps)


def _role(draft: Draft, span: CanonicalSpan) -> object:
    return draft.raw[span.span_id].attributes[ROLE]


def _spans(agent: CanonicalSpan, task: TaskCalls) -> list[CanonicalSpan]:
    return [_span(agent, number, call) for number, call in enumerate(task.calls, start=1)]


def _span(agent: CanonicalSpan, number: int, call: ToolCall) -> CanonicalSpan:
    return CanonicalSpan(
        trace_id=agent.trace_id,
        span_id=f"{agent.span_id}/{number:06d}",
        kind="TOOL",
        name=agent.name,
        parent_span_id=agent.span_id,
        start_time_unix_nano=agent.start_time_unix_nano,
        tool_name=call.name,
        tool_full_name=call.full_name,
        tool_arguments=call.arguments,
        tool_call_id=call.id,
    )
