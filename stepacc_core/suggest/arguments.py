"""Arguments that a step has in every run, as a reference writes them."""

from collections.abc import Mapping, Sequence
from typing import Any

from stepacc_core.model import Step
from stepacc_core.references.arguments import read_arguments
from stepacc_core.references.equality import same

_LEAST_RUNS = 2
"""What one run alone says is chance."""


def common_arguments(calls: Sequence[Step]) -> dict[str, Any]:
    """Return the arguments that all calls of a step have with equal values, in the form of a reference's `args`.

    None of them where there are fewer than two calls, or the arguments of one cannot be told apart by name.
    """
    given = [read_arguments(call.arguments) for call in calls]
    known = [arguments for arguments in given if arguments is not None]
    if len(given) < _LEAST_RUNS or len(known) < len(given):
        return {}
    first, *others = known
    return {
        name: _written(value)
        for name, value in first.items()
        if all(name in other and same(value, other[name]) for other in others)
    }


def _written(value: Any) -> Any:
    """Return a plain value so that it is not taken for a comparator."""
    return {"equals": value} if isinstance(value, Mapping) else value
