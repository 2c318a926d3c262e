"""The criterion `no worse than a baseline beyond noise`."""

from collections.abc import Sequence

from stepacc_core.comparison.baselines import AgainstBaseline, Baseline, compare, differences
from stepacc_core.comparison.observations import Observation, Selection, out_of_range
from stepacc_core.comparison.outcomes import Outcome, Status, listed, number, some

_WAY_OUT = "set the baseline anew (`stepacc gate baseline set {name} ...`), or gate what it was made of"


def judge_against(  # noqa: PLR0913 (what is compared, and how)
    baseline: Baseline,
    selection: Selection,
    now: Sequence[Observation],
    *,
    alpha: float,
    margin: float,
    all_tasks: bool,
    shared_references: bool,
    way_past: str,
) -> tuple[AgainstBaseline | None, Outcome]:
    """Compare scores with a baseline, and say what came of it.

    It is refused where metric, version, config or type differ, and where an expectation differs unless
    `shared_references` leaves that out. A drop that so few runs could not tell from noise, whatever their scores, does
    not pass either: a comparison that cannot fail says nothing. `way_past` is what `shared_references` is called there.
    """
    if not any(each.score is not None for each in now):
        return None, _outcome("failed", f"there is no score to compare with baseline {baseline.name}", None, margin)
    apart = differences(baseline.selection, selection)
    way_out = _WAY_OUT.format(name=baseline.name)
    if apart:
        reason = f"baseline {baseline.name} is of another {', '.join(apart)}, which do not compare; {way_out}"
        return None, _outcome("refused", reason, None, margin)
    if beyond := out_of_range(baseline.observations):
        return None, _outcome(
            "refused", f"of the scores of baseline {baseline.name}, {beyond}; {way_out}", None, margin
        )
    against = compare(baseline.observations, now, alpha=alpha, margin=margin)
    value = against.mean_change
    others = _revised(baseline, against)
    if others and not shared_references:
        reason = (
            f"the expectation of {listed(others)} was revised since baseline {baseline.name} was set; {way_out}, or "
            f"compare only what has the same expectation ({way_past})"
        )
        return against, _outcome("refused", reason, value, margin)
    if all_tasks and against.missing_tasks:
        reason = f"of {_missing(against)} of baseline {baseline.name} nothing is scored now"
        return against, _outcome("failed", reason, value, margin)
    return against, _outcome(*_judged(baseline, against, margin), value, margin)


def _revised(baseline: Baseline, against: AgainstBaseline) -> tuple[str, ...]:
    """Return what was measured against an expectation that the baseline does not have of it.

    That a run or two still have the old one is no reason to compare those alone.
    """
    kept = {each.task_id for each in baseline.observations if each.score is not None}
    newer = [each.task_id for each in against.pairing.after_only if each.task_id and each.task_id in kept]
    return tuple(dict.fromkeys((*(pair.name for pair in against.pairing.other_reference), *newer)))


def _outcome(status: Status, reason: str, value: float | None, margin: float) -> Outcome:
    return Outcome("baseline", status, reason, value, -margin or 0.0)


def _judged(baseline: Baseline, against: AgainstBaseline, margin: float) -> tuple[Status, str]:
    change, p = against.mean_change, against.p
    if change is None or p is None:
        return "failed", f"no score has a counterpart in baseline {baseline.name}, of its traces or of its tasks"
    noun = "trace or session" if against.pairing.by == "occurrence" else "task"
    told = f"{number(change)} on average over {_pairs(len(against.pairing.pairs), noun)} ({_compared(against)})"
    fell = f"the scores fell by {told.lstrip('-')} since baseline {baseline.name}"
    within = f" (p = {p:.2g}, one-sided)"
    if p <= against.alpha:
        return "failed", f"{fell}, which is beyond noise{_beside(margin)}{within}"
    if against.worse_tasks:
        worse = tuple(f"{each.task} by {number(-each.change)}" for each in against.worse_tasks)
        return "failed", f"{some(len(worse), 'task')} fell beyond noise since baseline {baseline.name}: {listed(worse)}"
    if change < -margin and against.smallest_p > against.alpha:
        return "failed", (
            f"{fell}, and so few runs cannot tell that from noise (the smallest p they can give is "
            f"{against.smallest_p:.2g}); score more runs"
        )
    if change < 0:
        return "passed", f"{fell}, which is within {'the margin or ' if margin else ''}noise{within}"
    return "passed", f"the scores changed by +{told} since baseline {baseline.name}"


def _beside(margin: float) -> str:
    return f" and the margin of {margin:g}" if margin else ""


def _compared(against: AgainstBaseline) -> str:
    """Say how many of the scores were compared, and of which tasks there was none to compare."""
    pairing = against.pairing
    compared = sum(len(pair.after) for pair in pairing.pairs)
    apart = sum(len(pair.after) for pair in pairing.other_reference)
    told = f"{compared} of {some(compared + apart + len(pairing.after_only) + against.repeated, 'score')}"
    return f"{told}, none of {_missing(against)}" if against.missing_tasks else told


def _missing(against: AgainstBaseline) -> str:
    return f"{'task' if len(against.missing_tasks) == 1 else 'tasks'} {listed(against.missing_tasks)}"


def _pairs(count: int, noun: str) -> str:
    if noun == "task":
        return some(count, noun)
    return f"{count} that {'is' if count == 1 else 'are'} in both"
