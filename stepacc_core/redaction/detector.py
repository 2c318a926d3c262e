"""What a detector is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

Place = tuple[int, int]
"""Where something begins and ends in a text, in characters."""

EDGE = r"(?:^|[^0-9A-Za-z]|\\[a-z])"
"""For gates: what comes before a number or a word, also where that is an escape in JSON; RE2 cannot look behind."""


@dataclass(frozen=True, slots=True)
class Detector:
    """Finds one kind of secret or personal data.

    Attributes:
        kind: what it finds.
        gate: pattern of RE2 that matches in every text in which it finds anything, also where the text is written
            as JSON; without it nothing is looked for.
        find: yields the places in a text, in order.
    """

    kind: str
    gate: str
    find: Callable[[str], Iterator[Place]]
