"""Steps that only some of the runs take, and where they belong among those that most take."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from stepacc_core.suggest.consensus import left_over
from stepacc_core.suggest.order import Evidence, Label, Order
from stepacc_core.suggest.runs import Key, key_of
from stepacc_core.suggest.written import Elements

_LEAST_RUNS = 2
"""What one run alone does is chance."""


@dataclass(frozen=True, slots=True)
class OptionalStep:
    """A step that some runs take.

    `before` is the index of the element that it stands before, which may be one past the last; `within` that of the
    element to whose steps its order varies. Both are None where there is no steady place.
    """

    key: Key
    support: int
    position: float
    before: int | None = None
    within: int | None = None


def find_optional(elements: Elements, evidence: Evidence, share: float) -> list[OptionalStep]:
    """Find the steps that so large a share of the runs takes beside those of the elements, in their order.

    Args:
        elements: the steps that most runs share.
        evidence: where these stand.
        share: of all runs, at least two.
    """
    places: dict[Key, dict[int, int]] = {}
    labels = {label for members in elements for label in members}
    for number, (run, found) in enumerate(zip(evidence.runs, evidence.places, strict=True)):
        shared = {label: place for label, place in found.items() if label in labels}
        for place in left_over(run, shared):
            places.setdefault(key_of(run.steps[place]), {}).setdefault(number, place)
    least = max(_LEAST_RUNS, share * len(evidence.runs) - 1e-9)
    optional = [_placed(key, at, elements, evidence) for key, at in places.items() if len(at) >= least]
    return sorted(optional, key=lambda step: (step.position, step.key))


def _placed(key: Key, at: dict[int, int], elements: Elements, evidence: Evidence) -> OptionalStep:
    position = fsum((place + 0.5) / len(evidence.runs[run].steps) for run, place in at.items()) / len(at)
    orders = [_order(at, members, evidence) for members in elements]
    varied = [
        index
        for index, order in enumerate(orders)
        if order.varies(evidence.varies_from) or order.is_parallel(evidence.parallel_from)
    ]
    match varied:
        case []:
            after = sum(order.after > order.before for order in orders)
            return OptionalStep(key, len(at), position, before=after)
        case [within]:
            return OptionalStep(key, len(at), position, within=within)
        case _:
            return OptionalStep(key, len(at), position)


def _order(at: dict[int, int], members: Sequence[Label], evidence: Evidence) -> Order:
    """Compare a step with those of an element; amid the steps of a group it is both before and after."""
    before = after = parallel = 0
    for number, place in at.items():
        found = evidence.places[number]
        others = [found[label] for label in members if label in found]
        before += any(place < other for other in others)
        after += any(place > other for other in others)
        parallel += any((min(place, other), max(place, other)) in evidence.runs[number].parallel for other in others)
    return Order(before, after, parallel)
