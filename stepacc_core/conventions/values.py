"""Reading values out of attributes, whatever a producer put there.

Attributes are foreign data: any value may have any type, be absent, or be JSON inside text. Nothing here raises for
a bad value; a value that cannot be read is None.
"""

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any

DEEPEST = 200
"""Levels of nesting that are read; deeper JSON stays text."""

_LARGEST = sys.float_info.max
_JSON_SPACE = " \t\n\r"
_LONGEST_REPR = 100_000
_DEEPEST_REPR = 50
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_UNSTORABLE_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def text(attributes: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first non-blank text among these attributes, without surrounding space."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str):
            stripped = value.strip()
            if stripped:
                return stripped
    return None


def integer(attributes: Mapping[str, Any], *keys: str) -> int | None:
    """Return the first whole number among these attributes; numbers written as text count."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, bool):
            continue
        if isinstance(value, int):
            return value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, str) and value.isdecimal() and len(value) < 20:  # noqa: PLR2004 - digits of 64 bits
            return int(value)
    return None


def number(attributes: Mapping[str, Any], *keys: str) -> float | None:
    """Return the first finite number among these attributes."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST:
            return float(value)
    return None


def storable(value: Any) -> Any:
    """Replace NUL and lone surrogates, which neither UTF-8 nor PostgreSQL can hold, by U+FFFD, at any depth."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def decode(written: str) -> Any:
    """Parse JSON text into storable values; numbers that JSON cannot hold (`NaN`, infinities) become text.

    Raises:
        ValueError: the text is not JSON, or nests too deeply to be read.
    """
    trimmed = written.strip(_JSON_SPACE)
    try:
        value, end = _DECODER.raw_decode(trimmed)
        if end != len(trimmed):
            msg = "Extra data"
            raise json.JSONDecodeError(msg, trimmed, end)
        return storable(value) if _may_be_unstorable(trimmed) else value
    except RecursionError:
        msg = "it nests too deeply to be read"
        raise ValueError(msg) from None


def _finite(written: str) -> float | str:
    value = float(written)
    return value if abs(value) < float("inf") else written


_DECODER = json.JSONDecoder(parse_constant=str, parse_float=_finite)


def _may_be_unstorable(written: str) -> bool:
    if "\\u" in written and _UNSTORABLE_ESCAPE.search(written):
        return True
    if written.isascii():
        return "\x00" in written
    return bool(_UNSTORABLE.search(written))


def is_shallow(value: Any) -> bool:
    """Tell whether a value nests at most `DEEPEST` levels, so that it can be compared, shown and written again."""
    level = [value]
    for _ in range(DEEPEST):
        level = [item for each in level if isinstance(each, dict | list) for item in _inside(each)]
        if not level:
            return True
    return False


def _inside(holder: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return holder.values() if isinstance(holder, dict) else holder


def parsed(value: Any) -> Any:
    """Return the value that text stands for: JSON, else a Python literal, else the text itself unchanged."""
    if not isinstance(value, str):
        return value
    stripped = value.strip()
    if not stripped or stripped[0] not in '{["-0123456789tfn':
        return value
    try:
        found = decode(stripped)
        return value if _may_nest_deeper(stripped, DEEPEST) and not is_shallow(found) else found
    except ValueError:
        literal = _literal(stripped)
        return value if literal is None else literal


def _literal(written: str) -> Any:
    """Read the `repr` of a dict or list, as a producer that calls `str` on its arguments leaves it."""
    if written[0] not in "{[" or len(written) > _LONGEST_REPR:
        return None
    if _may_nest_deeper(written, _DEEPEST_REPR) and _depth(written) > _DEEPEST_REPR:
        return None
    try:
        return storable(_jsonable(ast.literal_eval(written)))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _may_nest_deeper(written: str, levels: int) -> bool:
    """Tell, without looking at the nesting, whether there are brackets enough for more levels than these."""
    return len(written) > levels and written.count("{") + written.count("[") + written.count("(") > levels


def _depth(written: str) -> int:
    deepest = depth = 0
    for character in written:
        if character in "{[(":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}])":
            depth -= 1
    return deepest


def _jsonable(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, set):
        return sorted((_jsonable(item) for item in value), key=repr)
    return repr(value)


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object, or the object that text stands for; anything else is an empty one."""
    found = parsed(value)
    return found if isinstance(found, Mapping) else {}


def sequence(value: Any) -> list[Any]:
    """Return a list, or the list that text stands for; anything else is an empty one."""
    found = parsed(value)
    return list(found) if isinstance(found, list | tuple) else []


def lookup(attributes: Mapping[str, Any], path: str) -> Any:
    """Find a value by attribute name, or by a dotted path that goes on inside an attribute.

    `metadata.task_id` is the attribute of that name, else the key `task_id` of the attribute `metadata`, which may
    be an object or JSON text of one. None when there is no such value.
    """
    if path in attributes:
        return attributes[path]
    for holder, rest in _splits(path):
        if attributes.get(holder) is not None:
            return lookup(mapping(attributes[holder]), rest)
    return None


def may_hold(path: str) -> frozenset[str]:
    """Return the names of the attributes in which `lookup` would look for a path."""
    return frozenset({path, *(holder for holder, _ in _splits(path))})


@lru_cache(maxsize=1_024)
def _splits(path: str) -> tuple[tuple[str, str], ...]:
    """Return the ways to split a dotted path in two, the longest first part first."""
    dots = [at for at, character in enumerate(path) if character == "."]
    return tuple((path[:at], path[at + 1 :]) for at in reversed(dots))


def identifier(value: Any) -> str | None:
    """Return an id as text: numbers become text, JSON text of a string becomes that string, blanks are None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, str):
        return None
    found = value.strip()
    if len(found) > 1 and found[0] == found[-1] == '"':
        inner = parsed(found)
        found = inner.strip() if isinstance(inner, str) else found
    return found or None


def indexed(attributes: Mapping[str, Any], prefix: str) -> Iterator[tuple[int, str, Any]]:
    """Yield the flattened list under a prefix as (index, rest of the key, value), in the order of the indexes."""
    found = []
    start = len(prefix)
    for key, value in attributes.items():
        if key.startswith(prefix):
            index, _, rest = key[start:].partition(".")
            if index.isdecimal() and len(index) < 7:  # noqa: PLR2004 - a list has fewer items than a million
                found.append((int(index), rest, value))
    found.sort(key=_by_index_and_key)
    yield from found


def _by_index_and_key(entry: tuple[int, str, Any]) -> tuple[int, str]:
    return entry[:2]


def grouped(entries: Iterator[tuple[int, str, Any]]) -> list[dict[str, Any]]:
    """Collect indexed entries into one dict of attributes an item, in the order of the indexes."""
    items: dict[int, dict[str, Any]] = {}
    for index, rest, value in entries:
        items.setdefault(index, {})[rest] = value
    return list(items.values())


def flattened(nested: Mapping[str, Any]) -> dict[str, Any]:
    """Undo the nesting of attributes by stores that turn `llm.output_messages.0.message` into objects and lists.

    Every leaf gets its dotted key. Objects and lists stay readable under their own key too, so that attributes which
    were objects from the start (`metadata`) are found as such.
    """
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [(str(key), value) for key, value in nested.items()]
    while waiting:
        path, value = waiting.pop()
        found[path] = value
        if isinstance(value, Mapping):
            waiting += [(f"{path}.{key}", item) for key, item in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}.{index}", item) for index, item in enumerate(value)]
    return found
