"""The steps that most runs share, and where each of them stands in each run.

The labels are first given by counting: the second `search` of a run is the second one of the suggestion, in runs that
search as often as most. Then the runs are aligned with what follows from that, labels are given anew, and so on until
nothing changes. A label that no step of the alignment matches is given to an extra step of the same name, wherever it
stands: so a step that moved is seen to have moved, rather than to be missing here and extra there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from operator import itemgetter

from stepacc_core.alignment import align
from stepacc_core.suggest.order import Evidence, Places, in_order
from stepacc_core.suggest.regrouping import regrouped
from stepacc_core.suggest.runs import Key, Run, key_of
from stepacc_core.suggest.written import Elements, trajectory_of
from stepacc_core.trajectory import Trajectory

_ROUNDS = 10
"""More were never needed where there is anything to agree on."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What is enough.

    `share` is that of the runs in which a step must stand. Of the runs with two steps, `varies_from` is the share in
    which the less usual order must occur for it to vary, and `parallel_from` the share in which they ran at one time.
    """

    share: float
    varies_from: float
    parallel_from: float

    def enough(self, count: int, runs: int) -> bool:
        """Tell whether a step that stands in so many of the runs belongs."""
        return count >= max(1.0, self.share * runs - 1e-9)


def find_consensus(runs: Sequence[Run], names: Mapping[Key, str], thresholds: Thresholds) -> tuple[Elements, Evidence]:
    """Find the steps that enough runs share, and where they stand in each run.

    Args:
        runs: at least one.
        names: how each step is written.
        thresholds: what is enough.
    """
    wanted = _wanted([Counter(map(key_of, run.steps)) for run in runs], thresholds)
    counted = _evidence(runs, [_counted(run, wanted) for run in runs], thresholds)
    evidence = _evidence(runs, [_nearest(run, wanted, counted) for run in runs], thresholds)
    seen = [[[label] for members in _elements(evidence, thresholds) for label in members]]
    for _ in range(_ROUNDS):
        trajectory = trajectory_of(seen[-1], names)
        places = [_aligned(run, seen[-1], trajectory, evidence) for run in runs]
        evidence = _evidence(runs, _with_new(runs, places, thresholds), thresholds)
        elements = _elements(evidence, thresholds)
        if elements in seen:
            break
        seen.append(elements)
    elements = regrouped(elements, evidence, names)
    trajectory = trajectory_of(elements, names)
    return elements, _evidence(runs, [_aligned(run, elements, trajectory, evidence) for run in runs], thresholds)


def left_over(run: Run, places: Places) -> list[int]:
    """Return the places of the steps that have no label."""
    taken = set(places.values())
    return [index for index in range(len(run.steps)) if index not in taken]


def _evidence(runs: Sequence[Run], places: Sequence[Places], thresholds: Thresholds) -> Evidence:
    return Evidence(runs, places, thresholds.varies_from, thresholds.parallel_from)


def _elements(evidence: Evidence, thresholds: Thresholds) -> Elements:
    labels = {label for places in evidence.places for label in places}
    enough = [label for label in labels if thresholds.enough(evidence.support(label), len(evidence.runs))]
    return in_order(sorted(enough), evidence)


def _wanted(counts: Sequence[Counter[Key]], thresholds: Thresholds) -> dict[Key, int]:
    """Return how many of each step enough runs have, those left out of which there are none."""
    wanted: dict[Key, int] = {}
    for key in set().union(*counts):
        numbers = sorted((count[key] for count in counts), reverse=True)
        while thresholds.enough(sum(number > wanted.get(key, 0) for number in numbers), len(counts)):
            wanted[key] = wanted.get(key, 0) + 1
    return wanted


def _counted(run: Run, wanted: Mapping[Key, int]) -> Places:
    """Label the steps of which a run has as many as wanted, in order; of others it cannot be told which are which."""
    places: Places = {}
    for key, indices in _by_key(run, range(len(run.steps))).items():
        if len(indices) == wanted.get(key):
            places |= {(key, number): index for number, index in enumerate(indices)}
    return places


def _nearest(run: Run, wanted: Mapping[Key, int], counted: Evidence) -> Places:
    """Label as many steps of a run as can be, by where the labels stand in the runs that have as many as wanted."""
    places: Places = {}
    for key, indices in _by_key(run, range(len(run.steps))).items():
        labels = [(key, number) for number in range(wanted.get(key, 0))]
        at = [(index + 0.5) / len(run.steps) for index in indices]
        if labels and counted.support(labels[0]):
            due = [counted.position(label) for label in labels]
        else:
            due = [(number + 0.5) / len(labels) for number in range(len(labels))]
        places |= {labels[label]: indices[found] for label, found in _pairs(due, at)}
    return places


def _pairs(due: Sequence[float], at: Sequence[float]) -> list[tuple[int, int]]:
    """Pair as many as can be in order, so that the sum of the distances is least."""
    if len(due) > len(at):
        return [(first, second) for second, first in _pairs(at, due)]
    least: list[tuple[float, list[int]]] = [(0.0, [])] * (len(at) + 1)
    for want in due:
        row: list[tuple[float, list[int]]] = [(inf, [])]
        for index, found in enumerate(at):
            cost, chosen = least[index]
            row.append(min(row[-1], (cost + abs(want - found), [*chosen, index]), key=itemgetter(0)))
        least = row
    return list(enumerate(least[-1][1]))


def _by_key(run: Run, indices: Iterable[int]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = {}
    for index in indices:
        found.setdefault(key_of(run.steps[index]), []).append(index)
    return found


def _aligned(run: Run, elements: Elements, trajectory: Trajectory, before: Evidence) -> Places:
    """Label the steps of a run by its alignment, and give labels that are left to steps that are left."""
    places: Places = {}
    waiting = [list(members) for members in elements]
    for entry in align(trajectory, run.steps).entries if elements else ():
        if entry["op"] == "match":
            key, members = key_of(run.steps[entry["actual_index"]]), waiting[entry["expected_index"]]
            label = next((label for label in members if label[0] == key), None)
            if label is not None:
                members.remove(label)
                places[label] = entry["actual_index"]
    free = _by_key(run, left_over(run, places))
    near = sorted(
        (abs(before.position(label) - (index + 0.5) / len(run.steps)), label, index)
        for members in waiting
        for label in members
        for index in free.get(label[0], ())
    )
    taken: set[int] = set()
    for _, label, index in near:
        if label not in places and index not in taken:
            places[label] = index
            taken.add(index)
    return places


def _with_new(runs: Sequence[Run], places: list[Places], thresholds: Thresholds) -> list[Places]:
    """Give further labels to steps that are left over in enough runs."""
    left = [_by_key(run, left_over(run, found)) for run, found in zip(runs, places, strict=True)]
    wanted = _wanted([Counter({key: len(indices) for key, indices in by_key.items()}) for by_key in left], thresholds)
    used = {label for found in places for label in found}
    for key, count in wanted.items():
        first = 1 + max((number for of, number in used if of == key), default=-1)
        for found, by_key in zip(places, left, strict=True):
            found.update({(key, first + place): index for place, index in enumerate(by_key.get(key, ())[:count])})
    return places
