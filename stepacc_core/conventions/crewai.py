"""CrewAI under Traceloop: no span for a tool call, but the crew's span keeps each task's messages.

`crewai.crew.tasks_output` is the `repr` of a list of task outputs, which is no Python literal as a whole. The quoted
texts are masked first, so that names and brackets inside them cannot mislead, and then each task's `agent` and
`messages` are cut out and parsed by themselves.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from stepacc_core.conventions.completions import calls_in, unique
from stepacc_core.conventions.values import mapping, parsed
from stepacc_core.model import ToolCall

TASKS_OUTPUT = "crewai.crew.tasks_output"
ROLE = "crewai.agent.role"

_QUOTED = re.compile(r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*"|['"].*""", re.DOTALL)
"""A quoted text, or one that is cut off; the last alternative keeps the search linear."""

_TASK = re.compile(r"\bTaskOutput\(")
_AGENT = re.compile(r"\bagent=")
_MESSAGES = re.compile(r"\bmessages=(?=\[)")
_LONGEST = 10_000_000


@dataclass(frozen=True, slots=True)
class TaskCalls:
    """The tool calls that the messages of one task show, with the role of the agent that did the task."""

    role: str
    calls: tuple[ToolCall, ...]


def task_calls(tasks_output: Any) -> list[TaskCalls]:
    """Read the calls of each task in the order of the tasks; what cannot be read has none."""
    if not isinstance(tasks_output, str) or len(tasks_output) > _LONGEST:
        return []
    masked = _QUOTED.sub(_mask, tasks_output)
    starts = [found.start() for found in _TASK.finditer(masked)]
    cuts = pairwise([*starts, len(masked)])
    return [_one_task(tasks_output[start:end], masked[start:end]) for start, end in cuts]


def _mask(quoted: re.Match[str]) -> str:
    """Return a quoted text of the same length that holds nothing."""
    size = len(quoted.group())
    return ("'" + "_" * (size - 2) + "'")[:size]


def _one_task(written: str, masked: str) -> TaskCalls:
    agent = _AGENT.search(masked)
    quoted = _QUOTED.match(written, agent.end()) if agent else None
    role = quoted.group()[1:-1] if quoted else ""
    found = _MESSAGES.search(masked)
    messages = parsed(_bracketed(written, masked, found.end())) if found else []
    made = [m for m in messages if mapping(m).get("role") == "assistant"] if isinstance(messages, list) else []
    return TaskCalls(role, unique(call for message in made for call in calls_in(message)))


def _bracketed(written: str, masked: str, start: int) -> str:
    """Return the text from an opening bracket to the one that closes it."""
    depth = 0
    for at in range(start, len(masked)):
        if masked[at] in "[{(":
            depth += 1
        elif masked[at] in "]})":
            depth -= 1
            if depth == 0:
                return written[start : at + 1]
    return ""
