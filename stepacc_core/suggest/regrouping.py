"""Groups that hold too much or too little: they are changed where the runs are told in fewer bits after it.

Telling a run takes bits for the order of each group's members and for each edit. Two groups that were taken for one fit
the runs as well, with fewer orders to choose from; a group that is one costs an edit or more in every run that has
another order. (The principle of minimum description length: Rissanen, Automatica 14, 1978.)

Where all names differ, the orders of pairs tell all there is, and only a group of which some pair has an order is
looked at again. Names that come again are where counting goes astray: the second `search` of a run that dropped its
first is taken for the first.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import product
from math import factorial, fsum, log2

from stepacc_core.alignment import align
from stepacc_core.suggest.order import Evidence, Label
from stepacc_core.suggest.runs import Key
from stepacc_core.suggest.written import Elements, trajectory_of

_EDIT_BITS = 5.0
"""Which step, and what of it: a few bits, whose exact number matters little."""

_LONGEST = 60
"""Steps of a trajectory that is looked at again."""


def regrouped(elements: Elements, evidence: Evidence, names: Mapping[Key, str]) -> Elements:
    """Split groups, and join elements, as long as that tells the runs in fewer bits.

    Long trajectories are left as they are: each change that is tried aligns all runs anew.
    """
    if sum(map(len, elements)) > _LONGEST:
        return elements
    counts = Counter(key for members in elements for key, _ in members)
    again = {key for key, count in counts.items() if count > 1}
    least = _bits(elements, evidence, names)
    index = 0
    while index < len(elements):
        here, beside = elements[index], elements[index : index + 2]
        options = [
            *([*elements[:index], *parts, *elements[index + 1 :]] for parts in _parts(here, evidence, again)),
            *([*elements[:index], joined, *elements[index + 2 :]] for joined in _joined(beside, again)),
        ]
        costs = [_bits(option, evidence, names) for option in options]
        if costs and min(costs) < least:
            least = min(costs)
            elements = options[costs.index(least)]
            index = max(0, index - 1)
        else:
            index += 1
    return elements


def _joined(beside: Elements, again: AbstractSet[Key]) -> Iterator[list[Label]]:
    """Yield two elements as one, if a name of theirs comes again."""
    keys = {key for members in beside for key, _ in members}
    if len(beside) > 1 and len(keys) > 1 and keys & again:
        yield [label for members in beside for label in members]


def _parts(members: Sequence[Label], evidence: Evidence, again: AbstractSet[Key]) -> Iterator[list[list[Label]]]:
    """Yield a group in two parts, at each place in its order and with each member first or last.

    Only where an order between the parts does not vary, or a name comes again.
    """
    cuts = [(members[:at], members[at:]) for at in range(1, len(members))]
    for at, member in enumerate(members):
        rest = [*members[:at], *members[at + 1 :]]
        cuts += [([member], rest), (rest, [member])] if rest else []
    doubtful = any(key in again for key, _ in members)
    for first, second in cuts:
        orders = [evidence.order(*pair) for pair in product(first, second)]
        if any(order.is_parallel(evidence.parallel_from) for order in orders):
            continue
        if doubtful or not all(order.varies(evidence.varies_from) for order in orders):
            yield [list(first), list(second)]


def _bits(elements: Elements, evidence: Evidence, names: Mapping[Key, str]) -> float:
    trajectory = trajectory_of(elements, names)
    orders = sum(map(_orders, elements))
    return fsum(_EDIT_BITS * align(trajectory, run.steps).distance + orders for run in evidence.runs)


def _orders(members: Sequence[Label]) -> float:
    """Return the bits that tell one order of a group's members from the others; equal ones are not told apart."""
    alike = Counter(key for key, _ in members)
    return log2(factorial(len(members))) - sum(log2(factorial(count)) for count in alike.values())
