"""The nearest of the names that there are, for a name that is none of them."""

from collections.abc import Iterable


def meant(name: str, known: Iterable[str]) -> str:
    """Return a question after the name that may have been meant, with a blank before it; nothing where none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 (only errors wait for it)

    near = get_close_matches(name, list(known), 1)
    return f" (did you mean `{near[0]}`?)" if near else ""
