"""Suggestions as an annotations file, for a person to read, correct and confirm."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from stepacc_core.annotations import EXPECTED_STEPS_KEY, KEYS
from stepacc_core.picture.characters import printable
from stepacc_core.suggest.suggestion import Suggestion

_HEAD = """\
# Suggested from runs, and confirmed by nobody. Read it, correct it, then:
# stepacc annotations import THIS_FILE --confirm
"""
_WIDTH = 110


@dataclass(frozen=True, slots=True)
class TaskSuggestion:
    """What is suggested for a task."""

    task_id: str
    suggestion: Suggestion


def annotation_document(
    suggested: Sequence[TaskSuggestion], source: str | None, keys: Sequence[str] = KEYS, *, arguments: bool = False
) -> str:
    """Return an annotations file in YAML, every entry with `confirmed: false` and its support in comments.

    Args:
        suggested: one for each task, at least one.
        source: what the file is for; None leaves it to the import.
        keys: what to say of each task: `expected_steps`, `reference_trajectories` or both.
        arguments: whether references name the arguments that a step has in every run.
    """
    parts = [_HEAD]
    if source is not None:
        parts.append(yaml.dump({"source": source}, Dumper=_Dumper, allow_unicode=True))
    parts.append("annotations:\n")
    for one in suggested:
        parts += [f"# {line}\n" for line in support_lines(one)]
        parts.append(_yaml([_entry(one, keys, arguments=arguments)]))
    return "".join(parts)


def support_lines(one: TaskSuggestion) -> Iterator[str]:
    """Yield what a suggestion is based on, a line for each step."""
    suggestion = one.suggestion
    runs, fitting = suggestion.runs, suggestion.fitting
    yield f"task {printable(one.task_id)}: {fitting} of {runs} runs take exactly the expected steps"
    room = len(str(runs))
    for element in suggestion.elements:
        if element.reason:
            yield f"  in any order, since {element.reason}:"
        for member in element.members:
            indent = "    " if element.reason else "  "
            optional = " (optional)" if member.optional else ""
            yield f"{indent}{member.support:>{room}} of {runs}  {printable(member.name)}{optional}"
    for step in suggestion.unsteady:
        yield f"  left out, {step.support} of {runs} but at no steady place: {printable(step.name)}"


def _entry(one: TaskSuggestion, keys: Sequence[str], *, arguments: bool) -> dict[str, Any]:
    said = {
        EXPECTED_STEPS_KEY: one.suggestion.expected_steps(),
        "reference_trajectories": {
            "match": "in_order",
            "references": [{"name": "suggested", "steps": one.suggestion.reference(arguments=arguments)}],
        },
    }
    return {
        "target": {"type": "task", "id": one.task_id},
        "confirmed": False,
        **{key: said[key] for key in keys},
        "note": f"suggested, runs: {one.suggestion.runs}",
    }


def _yaml(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, default_flow_style=None, width=_WIDTH)


class _Dumper(yaml.SafeDumper):
    """A safe dumper that escapes U+0085, which PyYAML would write as a line break and read back as another one."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if "\x85" in text else None)


_Dumper.add_representer(str, _represent_text)
