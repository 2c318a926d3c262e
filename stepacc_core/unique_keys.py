"""Objects in which each key stands once."""

from collections import Counter
from typing import Any


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of pairs, as `object_pairs_hook` of `json.loads` takes it.

    Raises:
        ValueError: a key stands twice, of which most readers would keep the last.
    """
    unique = dict(pairs)
    if len(unique) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        msg = f"the key `{twice}` stands twice in one mapping; keep one"
        raise ValueError(msg)
    return unique
