"""Pairing the scores of two sides: the same occurrence, or other runs of the same task."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stepacc_core.comparison.observations import Observation, mean

PairedBy = Literal["occurrence", "task"]


@dataclass(frozen=True, slots=True)
class Pair:
    """What the two sides have of one occurrence or one task; at least one score each.

    Attributes:
        name: id of the occurrence or of the task.
        before: scored observations of the first side, ordered by id.
        after: those of the second.
        means: the mean score of each side.
    """

    name: str
    task_id: str | None
    before: tuple[Observation, ...]
    after: tuple[Observation, ...]
    means: tuple[float, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Work the means out, once."""
        object.__setattr__(self, "means", (mean(scores(self.before)), mean(scores(self.after))))

    @property
    def change(self) -> float:
        """The mean of the second side less that of the first."""
        before, after = self.means
        return after - before


@dataclass(frozen=True, slots=True)
class Pairing:
    """The scores of two sides, paired.

    Attributes:
        pairs: both sides scored, against the same expectation; ordered by name. Only these make a mean change.
        other_reference: both sides scored, but against different expectations.
        before_only: scored observations of the first side without a counterpart that is scored.
        after_only: those of the second.
        other_revisions: pairs whose expectation is the same although another annotation revision set it.
    """

    by: PairedBy
    pairs: tuple[Pair, ...]
    other_reference: tuple[Pair, ...]
    before_only: tuple[Observation, ...]
    after_only: tuple[Observation, ...]

    @property
    def other_revisions(self) -> int:
        """How many pairs have the same expectation by another annotation revision."""
        return sum(_revisions(pair.before) != _revisions(pair.after) for pair in self.pairs)


def pair_occurrences(before: Iterable[Observation], after: Iterable[Observation]) -> Pairing:
    """Pair each trace or session with itself, as for two versions or configs of a metric."""
    return _paired("occurrence", before, after, lambda each: each.occurrence)


def pair_tasks(before: Iterable[Observation], after: Iterable[Observation]) -> Pairing:
    """Pair the runs of each task with other runs of it, as for two time ranges or two sources.

    Of a task whose runs were measured against several expectations, those with the same one make a pair, so that a task
    may have several; what is left on both sides is told apart. A run without a task has no counterpart.
    """
    return _paired("task", before, after, lambda each: (each.partition_type, each.task_id) if each.task_id else None)


def scores(observations: Iterable[Observation]) -> list[float]:
    """Return the scores there are."""
    return [each.score for each in observations if each.score is not None]


def _paired(
    by: PairedBy,
    before: Iterable[Observation],
    after: Iterable[Observation],
    key_of: Callable[[Observation], Hashable],
) -> Pairing:
    """Pair what is scored by a key; what has none (None) has no counterpart."""
    sides = _grouped(before, key_of), _grouped(after, key_of)
    alone = [side.pop(None, []) for side in sides]
    pairs: list[Pair] = []
    other: list[Pair] = []
    for key in {**sides[0], **sides[1]}:
        left, right = (_grouped(side.get(key, ()), lambda each: each.reference_hash) for side in sides)
        pairs += [_pair(by, left.pop(shared), right.pop(shared)) for shared in left.keys() & right.keys()]
        rest = [[each for group in groups.values() for each in group] for groups in (left, right)]
        if all(rest):
            other.append(_pair(by, *rest))
        else:
            alone = [[*had, *got] for had, got in zip(alone, rest, strict=True)]
    return Pairing(by, _ordered(pairs), _ordered(other), *map(_by_id, alone))


def _grouped(
    observations: Iterable[Observation], key_of: Callable[[Observation], Hashable]
) -> dict[Hashable, list[Observation]]:
    found: defaultdict[Hashable, list[Observation]] = defaultdict(list)
    for each in observations:
        if each.score is not None:
            found[key_of(each)].append(each)
    return dict(found)


def _pair(by: PairedBy, before: Sequence[Observation], after: Sequence[Observation]) -> Pair:
    task = before[0].task_id or after[0].task_id
    return Pair((by == "task" and task) or before[0].partition_id, task, _by_id(before), _by_id(after))


def _ordered(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    return tuple(sorted(pairs, key=lambda pair: (pair.name, pair.before[0].occurrence, pair.after[0].occurrence)))


def _by_id(observations: Iterable[Observation]) -> tuple[Observation, ...]:
    return tuple(sorted(observations, key=lambda each: (each.partition_type, each.partition_id)))


def _revisions(observations: Iterable[Observation]) -> frozenset[int | None]:
    return frozenset(each.annotation_id for each in observations)
