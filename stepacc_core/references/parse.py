"""From what people write under `reference_trajectories` to references."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from stepacc_core.errors import FailureCode, ScoringError
from stepacc_core.references.document import References
from stepacc_core.references.model import TaskReferences
from stepacc_core.references.plain import plain_json
from stepacc_core.references.written import is_tag
from stepacc_core.shown import shown
from stepacc_core.unique_keys import unique_keys

_ELEMENTS = ("tool", "agent", "any_order")
_SHOWN = 5
"""Problems that one message names."""


def parse_references(value: Any) -> TaskReferences:
    """Turn what an author wrote into the references of a task.

    Args:
        value: the mapping of contract section 1, JSON text of it, a list of names and lists of names as in
            `expected_steps` (one reference without arguments), or a list of references.

    Raises:
        ScoringError: `invalid_references`, in a sentence that names reference and key.
    """
    document, where = _document(authored(value))
    try:
        return References.model_validate(document).made()
    except ValidationError as error:
        problems = list(_problems(error, document, where))
    more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    raise _refusal("; ".join(problems[:_SHOWN]) + more)


def authored(value: Any) -> Any:
    """Return what an author wrote as a JSON value: text parsed, dates as ISO text.

    Raises:
        ScoringError: `invalid_references`, for what is no JSON value, or too much of it.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value, object_pairs_hook=unique_keys)
        except (ValueError, RecursionError) as error:
            msg = f"{shown(value)} is no valid JSON ({error}); write an object or a list"
            raise _refusal(msg) from None
    try:
        return plain_json(value)
    except ValueError as error:
        raise _refusal(str(error)) from None


def _document(value: Any) -> tuple[Any, tuple[str | int, ...]]:
    """Return the whole form of what was written, and the part of its paths that nobody wrote."""
    if not isinstance(value, list):
        return value, ()
    if not value:
        msg = (
            "an empty list can be no reference; write {match: exact, references: [{steps: []}]} where nothing should "
            "be called"
        )
        raise _refusal(msg)
    if any(isinstance(item, Mapping) and not any(key in item for key in _ELEMENTS) for item in value):
        return {"references": value}, ("references",)
    return {"references": [{"steps": value}]}, ("references", 0, "steps")


def _problems(error: ValidationError, document: Any, unwritten: tuple[str | int, ...]) -> Iterator[str]:
    """Say each problem with its place; a list of which an item is bad is not bad for lacking that item."""
    found = [(tuple(part for part in problem["loc"] if not is_tag(part)), problem) for problem in error.errors()]
    for path, problem in found:
        if problem["type"] == "too_short" and any(other[: len(path)] == path for other, _ in found if other != path):
            continue
        yield _place(path, document, unwritten) + _said(problem)


def _said(problem: ErrorDetails) -> str:
    match problem["type"]:
        case "value_error":
            return problem["msg"].removeprefix("Value error, ")
        case "too_short":
            return "it is empty; write at least one"
        case "missing":
            return "it is missing"
        case _:
            said = problem["msg"]
            return f"{said[:1].lower()}{said[1:]}, given {shown(problem['input'])}"


def _place(path: tuple[str | int, ...], document: Any, unwritten: tuple[str | int, ...]) -> str:
    match path:
        case ("references", int() as number, *rest) if unwritten != ("references", 0, "steps"):
            key = _dotted(rest)
            return f"reference {_called(document['references'][number], number)}" + (f", `{key}`: " if key else ": ")
        case ("references", 0, "steps", *rest):
            return f"`{_dotted(rest)}`: " if rest else ""
    return f"`{_dotted(path)}`: " if path else ""


def _called(reference: Any, number: int) -> str:
    name = reference.get("name") if isinstance(reference, Mapping) else None
    return f"`{name}`" if isinstance(name, str) and name else str(number + 1)


def _dotted(path: tuple[str | int, ...] | list[str | int]) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def _refusal(problem: str) -> ScoringError:
    return ScoringError(FailureCode.INVALID_REFERENCES, f"`reference_trajectories` cannot be used: {problem}.")
