"""Regular expressions that cannot hang: a search that takes too long ends, and then nothing can be told.

The library `regex` reads Python's syntax and can end a search that goes astray, which `re` cannot; an engine that is
never slow (RE2) would refuse look-around and back-references, which people write. The time counted is this process's
processor time, so that a busy machine changes nothing.
"""

import re
from functools import lru_cache
from typing import Any

from stepacc_core.shown import shown

_LONGEST_SEARCH = 0.2
"""Seconds of processor time; a usual pattern takes microseconds, and milliseconds in a megabyte of text."""
_LONGEST_PATTERN = 2_000
"""Characters; a longer one is not written by a person."""
_MOST_COPIES = 20_000
"""Parts of a pattern with its counts written out, as `regex` compiles them; a million take seconds and much memory."""
_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\{(?P<count>\d+)(?:,\d*)?\}|(?P<begin>\()|(?P<end>\))|.", re.DOTALL)


def check_pattern(pattern: str) -> str:
    """Return a pattern that can be searched for.

    Raises:
        ValueError: it is too long or no regular expression, in words.
    """
    import regex  # noqa: PLC0415 (only what compares by patterns pays for it)

    if len(pattern) > _LONGEST_PATTERN:
        msg = f"a pattern of {len(pattern)} characters is too long; write at most {_LONGEST_PATTERN}"
        raise ValueError(msg)
    if _copies(pattern) > _MOST_COPIES:
        msg = f"{shown(pattern)} counts too far; its counts may ask for {_MOST_COPIES:,} copies in all"
        raise ValueError(msg)
    try:
        _compiled(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        msg = f"{shown(pattern)} is no regular expression ({error}); write one in Python's syntax"
        raise ValueError(msg) from None
    return pattern


def found_in(pattern: str, text: str) -> bool | None:
    """Tell whether a pattern is found anywhere in a text; None where the search took too long."""
    try:
        return _compiled(pattern).search(text, timeout=_LONGEST_SEARCH) is not None
    except TimeoutError:
        return None


def _copies(pattern: str) -> int:
    """Return how many parts a pattern has with its counts written out: 6 for `(ab){3}`."""
    open_groups, last = [0], 0
    for part in _PART.finditer(pattern):
        if part["begin"]:
            open_groups.append(0)
        elif part["count"]:
            count = int(part["count"])
            open_groups[-1] += last * max(count - 1, 0)
            last *= max(count, 1)
        else:
            last = open_groups.pop() if part["end"] and len(open_groups) > 1 else 1
            open_groups[-1] += last
    return sum(open_groups)


@lru_cache(maxsize=1_024)
def _compiled(pattern: str) -> Any:
    import regex  # noqa: PLC0415 (see above)

    return regex.compile(pattern)
