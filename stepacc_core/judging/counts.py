"""How many steps of the two sides belong together, order left aside (contract, section 2)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepacc_core.judging.relation import NO_CLASS, Wanted, WantedElement


@dataclass(frozen=True, slots=True)
class Counts:
    """A largest one-to-one matching of reference steps with observed ones, in numbers.

    `matched_required` of the `required` steps and `matched` of all have an observed step. One matching has both: the
    required steps that can be matched at once can be so in a largest matching too.
    """

    observed: int
    required: int
    matched: int
    matched_required: int

    @property
    def holds_in_any_order(self) -> bool:
        """Whether every required step has an observed one of its own."""
        return self.matched_required == self.required

    @property
    def matched_optional(self) -> int:
        """The optional steps that have an observed one."""
        return self.matched - self.matched_required

    @property
    def precision(self) -> float:
        """The share of observed steps that the reference names; without any, 1 where nothing was required, else 0."""
        return self.matched / self.observed if self.observed else float(not self.required)

    @property
    def recall(self) -> float:
        """The share of required steps that were observed; 1 where nothing was required."""
        return self.matched_required / self.required if self.required else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def count(elements: Sequence[WantedElement], classes: Sequence[int]) -> Counts:
    """Match the steps of a reference with observed ones, order and groups left aside."""
    steps = [step for element in elements for step in (element if isinstance(element, tuple) else (element,))]
    required = [step for step in steps if not step.optional]
    observed = Counter(number for number in classes if number != NO_CLASS)
    matched_required = _most_matched(required, observed)
    matched = matched_required if len(required) == len(steps) else _most_matched(steps, observed)
    return Counts(len(classes), len(required), matched, matched_required)


def _most_matched(steps: Iterable[Wanted], observed: Counter[int]) -> int:
    """Return the size of a largest matching, as the largest flow from kinds of reference steps to classes."""
    wanted = Counter(step.classes for step in steps if step.classes)
    if all(len(classes) == 1 for classes in wanted):  # no reference step has a choice
        return sum(min(number, observed[only]) for (only,), number in wanted.items())
    import numpy as np  # noqa: PLC0415 (slow to import, as the two below)
    from scipy.sparse import csr_array  # noqa: PLC0415
    from scipy.sparse.csgraph import maximum_flow  # noqa: PLC0415

    places = {number: 1 + len(wanted) + index for index, number in enumerate(observed)}
    sink = 1 + len(wanted) + len(places)
    edges: dict[tuple[int, int], int] = {(place, sink): observed[number] for number, place in places.items()}
    for source, (classes, number) in enumerate(wanted.items(), start=1):
        edges[0, source] = number
        edges |= {(source, places[each]): number for each in classes}
    capacities = np.fromiter(edges.values(), np.int32)
    graph = csr_array((capacities, np.array(list(edges)).T), shape=(sink + 1, sink + 1))
    return int(maximum_flow(graph, 0, sink).flow_value)
