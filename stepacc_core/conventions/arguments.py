"""Arguments of a tool call: out of text, and out of the wrappers that instrumentations put around them."""

from collections.abc import Mapping
from typing import Any

from stepacc_core.conventions.values import mapping, parsed

_CALL_WRAPPER = {"args", "kwargs"}
_CALL_WRAPPER_EXTRAS = {"sanitize_inputs_outputs"}
_RUN_WRAPPER_MARKS = {"tags", "metadata", "kwargs"}


def arguments_of(value: Any) -> Any:
    """Return the arguments that a recorded value stands for, as an object where that can be told.

    Blank text is a call without arguments. Text that cannot be parsed is kept as it is.
    """
    if value is None:
        return None
    if isinstance(value, str) and not value.strip():
        return {}
    found = parsed(value)
    return unwrapped(found) if isinstance(found, dict) else found


def unwrapped(value: Mapping[str, Any]) -> Any:
    """Take arguments out of the known wrappers.

    - `{args, kwargs}` or `{kwargs}` of a traced Python call, when nothing is positional: the keyword arguments;
    - `{inputs | input_str, tags, metadata, kwargs}` of a traced run: its inputs, or its input text.
    """
    if "kwargs" not in value:  # all of them have it
        return dict(value)
    keys = set(value)
    if keys <= {"kwargs"} | _CALL_WRAPPER_EXTRAS:  # MLflow and LlamaIndex leave out that nothing is positional
        return dict(value["kwargs"]) if isinstance(value["kwargs"], Mapping) else dict(value)
    if keys >= _CALL_WRAPPER and keys <= _CALL_WRAPPER | _CALL_WRAPPER_EXTRAS:
        named = value["kwargs"]
        return dict(named) if isinstance(named, Mapping) and not value["args"] else dict(value)
    if keys >= _RUN_WRAPPER_MARKS and keys & {"inputs", "input_str"}:
        inputs = value.get("inputs")
        return dict(inputs) if isinstance(inputs, Mapping) else arguments_of(value.get("input_str"))
    return dict(value)


def named(arguments: Any, parameters: Any) -> Any:
    """Give the positional arguments of a smolagents call their names, from the tool's parameters in their order.

    Args:
        arguments: as unwrapped; anything but `{args, kwargs, sanitize_inputs_outputs}` is returned as it is.
        parameters: the tool's schema as text; a store that keeps it as an object does not keep its order.
    """
    if not isinstance(arguments, dict) or set(arguments) != _CALL_WRAPPER | _CALL_WRAPPER_EXTRAS:
        return arguments
    given, by_name = arguments["args"], arguments["kwargs"]
    if not isinstance(given, list) or not isinstance(by_name, dict) or not isinstance(parameters, str):
        return arguments
    names = list(mapping(parameters)) if is_schema(parameters) else []
    match given:
        case [dict(only)] if not by_name and set(only) <= set(names):  # taken for the named arguments
            return only
        case _ if len(given) <= len(names) and by_name.keys().isdisjoint(names[: len(given)]):
            return {**dict(zip(names, given, strict=False)), **by_name}
    return arguments


def is_schema(value: Any) -> bool:
    """Tell whether a value describes a tool's parameters rather than giving their values."""
    found = parsed(value)
    if not isinstance(found, Mapping):
        return False
    if isinstance(found.get("properties"), Mapping):
        return True
    return bool(found) and all(isinstance(item, Mapping) and "type" in item for item in found.values())
