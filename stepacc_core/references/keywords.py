"""Which object is meant by its keys: comparators, checks and steps are told apart by the one keyword that each has."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import Discriminator

PLAIN = "<plain>"
"""The tag of a plain value."""


def tag(keyword: str) -> str:
    """Return the tag of a keyword, which no path of authored keys has in it."""
    return f"<{keyword}>"


def is_tag(part: object) -> bool:
    """Tell whether a part of a path is a tag, which is no part of what the author wrote."""
    return isinstance(part, str) and part.startswith("<") and part.endswith(">")


def by_keyword(keywords: Iterable[str], *, otherwise: Callable[[Any], str | None], error: str) -> Discriminator:
    """Tell objects apart by their first keyword.

    Args:
        keywords: the keywords, of which an object has one.
        otherwise: the tag of anything else, or None where it is refused.
        error: what is allowed, for a message.
    """
    known = tuple(keywords)

    def choose(value: Any) -> str | None:
        if isinstance(value, Mapping):
            found = next((keyword for keyword in known if keyword in value), None)
            if found is not None:
                return tag(found)
        return otherwise(value)

    return Discriminator(choose, custom_error_type="value_error", custom_error_message=error)


def only_keys(value: Any, allowed: Iterable[str], what: str) -> Any:
    """Return a value that is an object with known keys.

    Raises:
        ValueError: it is none, or it has others.
    """
    known = tuple(allowed)
    if not isinstance(value, Mapping):
        msg = f"{what} is an object with the keys {', '.join(known)}"
        raise ValueError(msg)  # noqa: TRY004 (pydantic takes ValueError as a refusal)
    if unknown := [str(key) for key in value if key not in known]:
        keys = ", ".join(f"`{key}`" for key in unknown)
        msg = f"unknown key {keys}; {what} has {', '.join(known)}"
        raise ValueError(msg)
    return value
