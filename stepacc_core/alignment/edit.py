"""Alignment at the least edit distance (contract of `agent.step_accuracy`, section 5).

Where several alignments are best, these rules decide, each among those the last one left:

1. the least distance;
2. the most matches;
3. the smallest sum of the lengths of the groups' windows, so that a stray step beside a group is not the group's;
4. the earliest windows: the starts of all windows are compared left to right;
5. the moves are compared left to right. A plain step takes the next observed step, alike or not, rather than leave
   it as extra, and leaves it as extra rather than be missing; a group takes the shorter window.

So of equal calls the first is the match and the others are extra. Within a window the steps claim members in the order
observed, each the first free one in authored order, as `stepacc_core.alignment.matching.claims` says in full; then the
members missing, in authored order, are substituted by the unclaimed steps, in the order observed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from stepacc_core.alignment.engine import best_spans
from stepacc_core.alignment.entries import Entry, entries, plain_entries
from stepacc_core.alignment.limits import check_size
from stepacc_core.alignment.plain import plain_edits
from stepacc_core.alignment.relation import Mask, patterns
from stepacc_core.model import Step
from stepacc_core.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Alignment:
    """One best alignment.

    Attributes:
        distance: the edit distance, and the number of entries that are no `match`.
        matches: the number of entries that are.
        entries: dicts in the order of the observed steps with `op` (`match`, `substitute`, `insert`, `delete`),
            `expected` and `actual` (names as authored and as observed, or None), `expected_index` (of the element, None
            for every `insert`), `actual_index`, and, for entries of a group only, `group` (the index of its element).
    """

    distance: int
    matches: int
    entries: list[Entry]


def align(trajectory: Trajectory, steps: Sequence[Step]) -> Alignment:
    """Align expected with observed steps.

    Raises:
        ScoringError: `too_large` when expected times observed steps exceed `limits.MAX_CELLS` or those of one side
            `limits.MAX_STEPS`, or when they are so long and so unlike that choosing among the best alignments would
            take more than `limits.MAX_WORK`.
    """
    size = len(steps)
    check_size(trajectory.total_steps, size)
    if not trajectory.has_groups:
        masks = cast("list[Mask]", patterns(trajectory, steps[::-1]))  # there are no tuples without groups
        edits = plain_edits(masks, size)
        if edits is not None:
            made = plain_entries(trajectory, [step.name for step in steps], edits)
            return Alignment(len(edits), len(made) - len(edits), made)
    found = patterns(trajectory, steps)
    elements = [pattern for pattern in found if pattern != ()] if trajectory.has_groups else found
    distance, spans = best_spans(elements, trajectory.total_steps, size)
    made = entries(trajectory, steps, found, spans)
    return Alignment(distance, len(made) - distance, made)
