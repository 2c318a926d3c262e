"""Regular expressions that cannot hang: a search that takes too long ends, and then nothing can be told.

The library `regex` reads Python's syntax and can end a search that goes astray, which `re` cannot; an engine that is
never slow (RE2) would refuse look-around and back-references, which people write. The time counted is this process's
processor time, so that a busy machine changes nothing.
"""

from functools import lru_cache
from typing import Any

_LONGEST_SEARCH = 0.2
"""Seconds of processor time; a usual pattern takes microseconds, and milliseconds in a megabyte of text."""
_LONGEST_PATTERN = 2_000
"""Characters; a longer one is not written by a person, and takes its time to compile."""


def check_pattern(pattern: str) -> str:
    """Return a pattern that can be searched for.

    Raises:
        ValueError: it is too long or no regular expression, in words.
    """
    import regex  # noqa: PLC0415 (only what compares by patterns pays for it)

    if len(pattern) > _LONGEST_PATTERN:
        msg = f"a pattern of {len(pattern)} characters is too long; write at most {_LONGEST_PATTERN}"
        raise ValueError(msg)
    try:
        _compiled(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        msg = f"{pattern!r} is no regular expression ({error}); write one in Python's syntax"
        raise ValueError(msg) from None
    return pattern


def found_in(pattern: str, text: str) -> bool | None:
    """Tell whether a pattern is found anywhere in a text; None where the search took too long."""
    try:
        return _compiled(pattern).search(text, timeout=_LONGEST_SEARCH) is not None
    except TimeoutError:
        return None


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> Any:
    import regex  # noqa: PLC0415 (see above)

    return regex.compile(pattern)
