"""The decision of a gate: do these scores pass, and why, in one sentence."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from stepacc_core.comparison.against import judge_against
from stepacc_core.comparison.baselines import AgainstBaseline, Baseline
from stepacc_core.comparison.forbidden import Forbidden, ForbiddenSearch
from stepacc_core.comparison.observations import Counts, Observation, Selection, out_of_range
from stepacc_core.comparison.outcomes import Outcome, Status, meets, number, number_below, some
from stepacc_core.errors import ConfigError


def as_field(name: str) -> str:
    """Return a criterion's name as Python and a `defs.yaml` write it."""
    return f"`{name}`"


def as_option(name: str) -> str:
    """Return a criterion's name as the command line writes it."""
    return f"`--{name.replace('_', '-')}`"


@dataclass(frozen=True, slots=True)
class Criteria:
    """What scores must meet; None or False: nothing is asked of that.

    Args:
        min_mean: least mean of the scores, absolute.
        min_coverage: least share of the known occurrences that have a score, 0 to 1.
        min_scored: least number of scores, 1 or more; an empty selection never passes.
        no_forbidden: whether no step that a reference forbids may have run.
        against_baseline: whether the scores must be no worse than a baseline beyond noise.
        margin: by how much they may fall below the baseline, in units of the score, 0 or more.
        alpha: chance of failing the baseline where nothing fell; above 0, at most 0.5.
        all_tasks: whether every task of the baseline must have a score now.
        shared_references: compare what has the same expectation as in the baseline and leave out the rest, instead of
            refusing.
        spelled: how sentences write the name of a criterion, so that they name what somebody typed.

    Raises:
        ConfigError: a value is out of its range, or nothing is asked.
    """

    min_mean: float | None = None
    min_coverage: float | None = None
    min_scored: int = 1
    no_forbidden: bool = False
    against_baseline: bool = False
    margin: float = 0.0
    alpha: float = 0.05
    all_tasks: bool = False
    shared_references: bool = False
    spelled: Callable[[str], str] = field(default=as_field, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse what cannot be met, or says nothing."""
        self._refuse("min_mean", self.min_mean, within=(0, 1))
        self._refuse("min_coverage", self.min_coverage, within=(0, 1))
        self._refuse("margin", self.margin, within=(0, 1))
        self._refuse("min_scored", self.min_scored, within=(1, 2**63))
        if not 0 < self.alpha <= 0.5:  # noqa: PLR2004 (beyond it, a drop would be more likely than not)
            msg = f"{self.spelled('alpha')} is {self.alpha}; use more than 0 and at most 0.5, such as 0.05."
            raise ConfigError(msg, "alpha")
        asked = (self.min_mean is not None, self.min_coverage is not None, self.no_forbidden, self.against_baseline)
        if not any((*asked, self.min_scored > 1)):
            names = ("min_mean", "min_coverage", "min_scored", "no_forbidden", "baseline")
            msg = f"The gate asks for nothing; give one or more of {', '.join(map(self.spelled, names))}."
            raise ConfigError(msg)

    def _refuse(self, name: str, value: float | None, within: tuple[float, float]) -> None:
        low, high = within
        if value is not None and not low <= value <= high:
            most = "or more" if high > 1 else f"to {high}"
            msg = f"{self.spelled(name)} is {value}; use {low} {most}."
            raise ConfigError(msg, name)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a gate judges.

    Attributes:
        selection: which scores.
        observations: the current evaluation of each of its occurrences.
        without_row: known occurrences without an evaluation: nobody annotated them and the source skips those, they
            still go on, or they were not evaluated yet.
        forbidden: what came of looking for forbidden steps; None where the metric does not look for them.
    """

    selection: Selection
    observations: tuple[Observation, ...]
    without_row: int = 0
    forbidden: ForbiddenSearch | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a gate opens, and why."""

    evidence: Evidence
    counts: Counts
    outcomes: tuple[Outcome, ...]
    baseline: Baseline | None = None
    against: AgainstBaseline | None = field(default=None)

    @property
    def passed(self) -> bool:
        """Whether every criterion is met."""
        return all(each.status == "passed" for each in self.outcomes)

    @property
    def coverage(self) -> float | None:
        """Share of the known occurrences that have a score; None where there are none."""
        known = self.counts.total + self.evidence.without_row
        return self.counts.scored / known if known else None

    @property
    def reason(self) -> str:
        """The decision in one sentence: what failed, or else what was met."""
        status: Status = "passed" if self.passed else "failed"
        told = [each.reason for each in self.outcomes if (each.status == "passed") is self.passed]
        return f"The gate {status}: {'; '.join(told)}."


def decide(criteria: Criteria, evidence: Evidence, baseline: Baseline | None = None) -> Decision:
    """Judge scores by criteria.

    Args:
        criteria: what is asked.
        evidence: the scores.
        baseline: what they are compared with, where the criteria ask for it.

    Returns:
        A decision with one outcome for each criterion, and one for the number of scores, which is always asked.
    """
    counts = Counts.of(evidence.observations)
    against, told = None, []
    if criteria.against_baseline:
        if baseline is None:
            msg = "The criteria ask for a comparison with a baseline, and none is given; give one."
            raise ConfigError(msg, "baseline")
        against, outcome = judge_against(
            baseline,
            evidence.selection,
            evidence.observations,
            alpha=criteria.alpha,
            margin=criteria.margin,
            all_tasks=criteria.all_tasks,
            shared_references=criteria.shared_references,
            way_past=criteria.spelled("shared_references"),
        )
        told = [outcome]
    outcomes = (*_absolute(criteria, evidence, counts), *told)
    return Decision(evidence, counts, outcomes, baseline if criteria.against_baseline else None, against)


def _absolute(criteria: Criteria, evidence: Evidence, counts: Counts) -> Iterator[Outcome]:
    yield _scored(criteria.min_scored, evidence, counts)
    if criteria.min_mean is not None:
        yield _floor(criteria.min_mean, counts)
    if criteria.min_coverage is not None:
        yield _covered(criteria.min_coverage, evidence, counts)
    if criteria.no_forbidden:
        yield _forbidden(evidence)


def _scored(least: int, evidence: Evidence, counts: Counts) -> Outcome:
    kind = evidence.selection.partition_type
    beyond = out_of_range(evidence.observations)
    status: Status = "passed" if counts.scored >= least and not beyond else "failed"
    if beyond:
        reason = f"of {some(counts.scored, 'score')}, {beyond}; mend the metric"
    elif counts.scored >= least:
        reason = f"{some(counts.scored, kind)} scored"
    elif not counts.total:
        reason = f"nothing was evaluated in {evidence.selection}"
    else:
        reason = f"only {counts.scored} of {some(counts.total, kind)} scored, and at least {least} must be"
    return Outcome("scored", status, reason, counts.scored, least)


def _floor(least: float, counts: Counts) -> Outcome:
    if counts.mean is None:
        return Outcome("mean", "failed", f"there is no score to make a mean of at least {least:g}", None, least)
    if meets(counts.mean, least):
        return Outcome("mean", "passed", f"the mean {number(counts.mean)} is at least {least:g}", counts.mean, least)
    return Outcome(
        "mean", "failed", f"the mean {number_below(counts.mean, least)} is below {least:g}", counts.mean, least
    )


def _covered(least: float, evidence: Evidence, counts: Counts) -> Outcome:
    known = counts.total + evidence.without_row
    share = counts.scored / known if known else None
    if share is None:
        return Outcome("coverage", "failed", "there is nothing to cover", None, least)
    parts = [
        f"{count} {name}"
        for count, name in (
            (counts.failed, "failed"),
            (counts.not_applicable, "not applicable"),
            (evidence.without_row, "without an evaluation"),
        )
        if count
    ]
    told = f"{counts.scored} of {known} have a score" + (f" ({', '.join(parts)})" if parts else "")
    if meets(share, least):
        return Outcome("coverage", "passed", f"the coverage {number(share)} is at least {least:g}", share, least)
    return Outcome(
        "coverage", "failed", f"the coverage {number_below(share, least)} is below {least:g}: {told}", share, least
    )


def _forbidden(evidence: Evidence) -> Outcome:
    kind, search = evidence.selection.partition_type, evidence.forbidden
    if search is None:
        reason = (
            f"{evidence.selection.metric} does not look for forbidden steps; gate a member of agent.trajectory_match, "
            "such as trajectory_match.passed"
        )
        return Outcome("forbidden", "refused", reason, None, 0)
    unseen = _unseen(search)
    if search.found:
        reason = f"forbidden steps ran in {_told(search.found, kind)}{unseen}"
        return Outcome("forbidden", "failed", reason, len(search.found), 0)
    if not search.looked_at:
        return Outcome("forbidden", "failed", f"no {kind} was scored in which to look for forbidden steps", None, 0)
    reason = f"no forbidden step ran in {some(search.looked_at, f'scored {kind}')}{unseen}"
    return Outcome("forbidden", "passed", reason, 0, 0)


def _unseen(search: ForbiddenSearch) -> str:
    """Say of how many nobody knows whether something forbidden ran; that is no news that nothing did."""
    unseen = search.unseen
    if not unseen:
        return ""
    parts = ", ".join(f"{count} {why}" for why, count in unseen.items())
    return f", and nothing is known of {sum(unseen.values())} more ({parts})"


def _told(found: Sequence[Forbidden], kind: str) -> str:
    first = found[0]
    more = "" if len(found) == 1 else f" (in {first.partition_id}: {', '.join(first.steps)})"
    if len(found) == 1:
        return f"{kind} {first.partition_id}: {', '.join(first.steps)}"
    return f"{some(len(found), kind)}{more}"
