"""Equality of JSON values by type.

`1` equals `1.0`, but neither `true` nor `"1"`; the order of keys is nothing, that of a list counts.
"""

from collections.abc import Hashable, Mapping
from operator import itemgetter
from typing import Any

Canonical = tuple[Hashable, ...]


def canonical(value: Any) -> Canonical:
    """Return a hashable form of a JSON value; two values are equal by type when their forms are equal.

    However deep the value is: it is taken apart without recursion, and the form is flat.
    """
    form: list[Hashable] = []
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Mapping):
            items = sorted(((str(key), inner) for key, inner in found.items()), key=itemgetter(0))
            form.append(("object", tuple(key for key, _ in items)))
            waiting += [inner for _, inner in reversed(items)]
        elif isinstance(found, list | tuple):
            form.append(("list", len(found)))
            waiting += reversed(found)
        else:
            form.append(_leaf(found))
    return tuple(form)


def same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal by type."""
    return canonical(one) == canonical(other)


def _leaf(value: Any) -> Hashable:
    if value is None or isinstance(value, bool | str):
        return (type(value).__name__, value)
    if isinstance(value, int | float):
        return ("number", "nan" if value != value else value)  # noqa: PLR0124 (only NaN differs from itself)
    return (type(value).__name__, repr(value))
