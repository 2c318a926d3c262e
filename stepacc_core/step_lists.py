"""Lists of steps as people write them on a command line: `search,[fetch_a,fetch_b],answer`, or JSON."""

import json
import re
from collections.abc import Mapping
from typing import Any

from stepacc_core.errors import ConfigError
from stepacc_core.model import Step
from stepacc_core.shown import shown

AGENT = "agent:"
"""Begins the name of an observed step that is an agent's."""

_TOKENS = re.compile(r"[\[\],]|[^\[\],]+")


def parse_expected(text: str) -> list[Any]:
    """Return expected steps for `step_accuracy`.

    Args:
        text: names between commas, groups in brackets, or a JSON list of names and lists of names. Text that is a valid
            JSON list is taken as JSON, so `["a","b"]` are two steps and `[a,b]` is one group.

    Raises:
        ConfigError: brackets or commas stand where none can.
    """
    found = _json_list(text)
    return _compact(text) if found is None else found


def parse_observed(text: str) -> list[Step]:
    """Return observed steps.

    Args:
        text: names between commas, those of agents as `agent:NAME`; or a JSON list of such names, or of objects
            `{"tool": NAME}` or `{"agent": NAME}` with `arguments` or not.

    Raises:
        ConfigError: an element is no step, such as a group.
    """
    found = _json_list(text)
    return [_step(element) for element in (_compact(text) if found is None else found)]


def _json_list(text: str) -> list[Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _step(element: Any) -> Step:
    match element:
        case str() if element.removeprefix(AGENT):
            name = element.removeprefix(AGENT)
            return Step(name, kind="TOOL" if name == element else "AGENT")
        case {"agent": str(name)} if name:
            return Step(name, kind="AGENT")
        case {"tool": str(name)} if name:
            return Step(name, arguments=_arguments(element))
        case _:
            msg = (
                f"{shown(element)} is no observed step; write a name, `{AGENT}NAME`, or in JSON an object that has "
                '"tool" or "agent". What was observed has an order, so there are no groups.'
            )
            raise ConfigError(msg)


def _arguments(element: Mapping[str, Any]) -> Any:
    return element.get("arguments", element.get("args"))


def _compact(text: str) -> list[Any]:
    """Read names between commas, and groups of them between brackets."""
    steps: list[Any] = []
    group: list[str] | None = None
    after = True  # a comma, a bracket that opens, or the beginning: a step may follow
    for token in filter(str.strip, _TOKENS.findall(text)):
        into = steps if group is None else group
        match token:
            case "[" if group is None and after:
                group = []
            case "]" if group is not None and not (after and group):
                steps.append(group)
                group, after = None, False
            case "," if not after:
                after = True
            case "[" | "]" | ",":
                raise _unreadable(text, f"`{token}`")
            case _ if after:
                into.append(token.strip())
                after = False
            case _:
                raise _unreadable(text, shown(token.strip()))
    if group is not None or (after and steps):
        raise _unreadable(text, "its end")
    return steps


def _unreadable(text: str, where: str) -> ConfigError:
    msg = (
        f"The steps {shown(text)} cannot be read at {where}; write names between commas and groups in brackets, as in "
        "`search,[fetch_a,fetch_b],answer`, or a JSON list for names that hold any of these."
    )
    return ConfigError(msg)
