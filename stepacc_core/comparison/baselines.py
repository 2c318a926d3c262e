"""Scores against a stored baseline: did they fall beyond noise, and where."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stepacc_core.comparison.intervals import Change, change_over
from stepacc_core.comparison.observations import Observation, Selection
from stepacc_core.comparison.pairing import Pair, Pairing, pair_occurrences, pair_tasks, scores
from stepacc_core.comparison.permutation import Stratum, mean_change, p_of_drop, smallest_p


@dataclass(frozen=True, slots=True)
class Baseline:
    """Scores that later ones are compared with.

    Attributes:
        name: what people call it; one source may have many.
        revision: 1, 2, 3, ... each time it is set anew.
        selection: which scores it was made of.
        observations: these scores, as they were then.
    """

    name: str
    revision: int
    selection: Selection
    observations: tuple[Observation, ...]


@dataclass(frozen=True, slots=True)
class TaskDrop:
    """What became of one task since the baseline.

    Attributes:
        p: p value of the null hypothesis that it fell by no more than the margin, adjusted for the number of tasks
            tested (Benjamini and Hochberg); None where its runs are too few to be tested.
        worse: whether it fell beyond noise.
    """

    task: str
    runs_before: int
    runs_after: int
    change: float
    p: float | None
    worse: bool


@dataclass(frozen=True, slots=True)
class AgainstBaseline:
    """The comparison of scores with a baseline.

    Attributes:
        pairing: how the scores were paired.
        mean_change: mean change over the pairs; None where nothing pairs.
        p: p value of the null hypothesis that it fell by no more than the margin; None where nothing pairs.
        alpha: what `p` was compared with. Where single tasks are tested too, overall and tasks have half the error
            each.
        smallest_p: the smallest p value that so many runs could have given.
        tasks: what became of each task that has runs on both sides.
        missing_tasks: tasks of the baseline of which the selection has no score.
        repeated: scores left out since the same trace or session is in the baseline, so that it is no new run.
    """

    pairing: Pairing
    mean_change: float | None
    p: float | None
    alpha: float
    smallest_p: float
    tasks: tuple[TaskDrop, ...] = field(default=())
    missing_tasks: tuple[str, ...] = ()
    repeated: int = 0

    @property
    def change(self) -> Change | None:
        """The mean change with its interval, which is worked out anew at every call; None where nothing pairs."""
        return change_over(self.pairing.pairs)

    @property
    def worse_tasks(self) -> tuple[TaskDrop, ...]:
        """The tasks that fell beyond noise."""
        return tuple(each for each in self.tasks if each.worse)


def differences(baseline: Selection, selection: Selection) -> tuple[str, ...]:
    """Return what keeps scores from being compared with a baseline, such as `version 1.0.0 and now 2.0.0`.

    Another metric or version has another config in any case.
    """
    named = (
        ("metric", baseline.metric, selection.metric),
        ("version", baseline.metric_version, selection.metric_version),
        ("type", baseline.partition_type, selection.partition_type),
    )
    found = [f"{name} {was} and now {now}" for name, was, now in named if was != now]
    if not found and baseline.config_hash != selection.config_hash:
        found.append(f"config {baseline.config_hash} and now {selection.config_hash}")
    return tuple(found)


def compare(
    baseline: Sequence[Observation], now: Sequence[Observation], *, alpha: float = 0.05, margin: float = 0.0
) -> AgainstBaseline:
    """Compare scores with those of a baseline, of the same metric, version and config.

    Where all that is scored now is in the baseline too, as when recorded traces are read anew, each trace or session is
    paired with itself. Else runs of a task are paired with the runs of it in the baseline, and what is in both is left
    out of the scores of now.

    Args:
        baseline: its observations.
        now: the observations to judge.
        alpha: chance of telling of a drop where there is none, over the whole comparison.
        margin: by how much scores may fall.
    """
    scored = [each for each in now if each.score is not None]
    before = {each.occurrence for each in baseline if each.score is not None}
    repeated = [each for each in scored if each.occurrence in before]
    if scored and len(repeated) == len(scored):
        repeated, pairing = [], pair_occurrences(baseline, scored)
        missing: tuple[str, ...] = ()
    else:
        pairing = pair_tasks(baseline, (each for each in scored if each.occurrence not in before))
        missing = _missing(pairing)
    if not pairing.pairs:
        return AgainstBaseline(pairing, None, None, alpha, 1.0, (), missing, len(repeated))
    strata = [_stratum(pair) for pair in pairing.pairs]
    tasks, alpha = _tasks(pairing.pairs, alpha, margin)
    p = p_of_drop(strata, margin)
    return AgainstBaseline(pairing, mean_change(strata), p, alpha, smallest_p(strata), tasks, missing, len(repeated))


def _tasks(pairs: Sequence[Pair], alpha: float, margin: float) -> tuple[tuple[TaskDrop, ...], float]:
    """Return what became of each task, and what is left of alpha for all of them together.

    The adjustment holds the share of wrong ones among the tasks that are named, and so also the chance of naming any
    where none fell: then all would be wrong.
    """
    by_task: dict[str, list[Stratum]] = {}
    for pair in pairs:
        if pair.task_id is not None:
            by_task.setdefault(pair.task_id, []).append(_stratum(pair))
    half = alpha / 2
    testable = [task for task, strata in by_task.items() if smallest_p(strata) <= half]
    adjusted: dict[str, float] = {}
    if len(testable) > 1:
        from scipy import stats  # noqa: PLC0415 (slow to load)

        found = stats.false_discovery_control([p_of_drop(by_task[task], margin) for task in testable])
        adjusted = dict(zip(testable, map(float, found), strict=True))
    tasks = [_task(task, strata, adjusted.get(task), half) for task, strata in by_task.items()]
    return tuple(sorted(tasks, key=lambda each: (each.change, each.task))), half if adjusted else alpha


def _task(task: str, strata: Sequence[Stratum], p: float | None, alpha: float) -> TaskDrop:
    runs = [sum(len(side) for side in sides) for sides in ((s.before for s in strata), (s.after for s in strata))]
    return TaskDrop(task, runs[0], runs[1], mean_change(strata), p, p is not None and p <= alpha)


def _missing(pairing: Pairing) -> tuple[str, ...]:
    there = {pair.task_id for pair in (*pairing.pairs, *pairing.other_reference)}
    gone = _task_ids(pairing.before_only) - _task_ids(pairing.after_only) - there
    return tuple(sorted(task for task in gone if task is not None))


def _task_ids(observations: Iterable[Observation]) -> set[str | None]:
    return {each.task_id for each in observations}


def _stratum(pair: Pair) -> Stratum:
    return Stratum(tuple(scores(pair.before)), tuple(scores(pair.after)))
