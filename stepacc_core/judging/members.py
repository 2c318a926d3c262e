"""The rows of the family, and what belongs to all of them (contract, section 2)."""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

from stepacc_core.judging.considered import Considered, ForbiddenSeen, consider
from stepacc_core.judging.efficiency import efficiency_facts
from stepacc_core.judging.entries import authored, entries
from stepacc_core.judging.judge import MODES, Judged, choose, judge
from stepacc_core.judging.run import Run
from stepacc_core.judging.verdict import verdict
from stepacc_core.model import Failure, Gap, Member, Result
from stepacc_core.references import AnswerResult, TaskReferences, check_answer

HEADLINE = "trajectory_match.passed"
FAMILY = (
    "trajectory_match.exact",
    "trajectory_match.in_order",
    "trajectory_match.any_order",
    HEADLINE,
    "trajectory_match.precision",
    "trajectory_match.recall",
    "trajectory_match.f1",
    "trajectory_match.arguments",
    "trajectory_match.efficiency",
    "trajectory_match.final_answer",
)
"""Names of the rows, in the order of the manifest."""

HOOK_FAILED = "hook_failed"
"""The code of the answer's row where the user's own function raised."""

_UNTOLD = {
    "redacted": "an argument was redacted, and what is left of it does not tell",
    "too_slow": "the pattern took too long on an argument",
}


def result_of(run: Run, references: TaskReferences, labels: dict[str, Any]) -> Result:
    """Judge a run by all references of its task.

    Args:
        run: the run.
        references: what is acceptable.
        labels: what the metadata begin with.

    Raises:
        ScoringError: `too_large`.
    """
    considered = consider(run.steps, references)
    judged = [judge(considered, reference) for reference in references.references]
    chosen = choose(judged, references)
    check = references.final_answer
    written = next(reference for reference in references.references if reference.name == chosen.reference.name)
    answer = check_answer(check, run.answer, task=run.task_id, reference=written) if check else None
    holds = {mode: any(one.holds[mode] for one in judged) for mode in MODES}
    passed = holds[references.match] and not considered.forbidden
    members = (
        *(_scored(mode, float(holds[mode])) for mode in MODES),
        _scored("passed", float(passed)),
        *_counted(chosen),
        _arguments(chosen),
        _scored("efficiency", chosen.efficiency, efficiency_facts(chosen, run.usage, references.budget)),
        _final_answer(answer, references, run.answer),
    )
    metadata = {
        **labels,
        "match": references.match,
        "verdict": verdict(
            path=holds[references.match], forbidden=bool(considered.forbidden), answer=answer, crashed=run.crashed
        ),
        "crashed": run.crashed,
        "reference": {"name": chosen.reference.name, "confirmed": chosen.reference.confirmed},
        "references": [_told(one) for one in judged],
        "assumptions": [
            {"kind": "unconfirmed_reference", "reference": reference.name}
            for reference in references.references
            if not reference.confirmed
        ],
        **_alignment(chosen, considered),
        "forbidden": [_sequence(seen) for seen in considered.forbidden],
        "forbidden_span_ids": [step.span_id for seen in considered.forbidden for step in seen.steps if step.span_id],
        "gaps": [_gap(gap) for gap in (*run.gaps, *_untold(chosen, answer))],
    }
    return Result("scored", float(passed), metadata, family=members)


def same_for_all(result: Result) -> Result:
    """Give a result without a score its family: each row says the same."""
    return Result(
        result.status,
        metadata=result.metadata,
        error=result.error,
        reason=result.reason,
        family=tuple(Member(name, result.status, error=result.error, reason=result.reason) for name in FAMILY),
    )


def _scored(row: str, score: float, metadata: dict[str, Any] | None = None) -> Member:
    return Member(f"trajectory_match.{row}", "scored", score, metadata or {})


def _counted(chosen: Judged) -> Iterator[Member]:
    counts = chosen.counts
    facts = {
        "matched_steps": counts.matched,
        "matched_required_steps": counts.matched_required,
        "required_steps": counts.required,
        "observed_steps": counts.observed,
    }
    for row, score in (("precision", counts.precision), ("recall", counts.recall), ("f1", counts.f1)):
        yield _scored(row, score, dict(facts))


def _arguments(chosen: Judged) -> Member:
    facts = {"checks": chosen.asked, "holding": chosen.holding, "untold": chosen.asked - chosen.told}
    if chosen.arguments is not None:
        return _scored("arguments", chosen.arguments, facts)
    if not chosen.names_checks:
        reason = "no_argument_checks"
    else:
        reason = "arguments_not_told" if chosen.asked else "no_checked_step_ran"
    return Member("trajectory_match.arguments", "not_applicable", metadata=facts, reason=reason)


def _final_answer(answer: AnswerResult | None, references: TaskReferences, given: Any) -> Member:
    name = "trajectory_match.final_answer"
    if answer is None or references.final_answer is None:
        return Member(name, "not_applicable", reason="no_final_answer_check")
    facts = {"check": references.final_answer.written(), "answer": given}
    if answer.error is not None:
        return Member(name, "failed", metadata=facts, error=Failure(HOOK_FAILED, answer.error))
    if answer.score is not None:
        return Member(name, "scored", answer.score, facts)
    if answer.holds is None:
        return Member(name, "not_applicable", metadata=facts, reason=f"answer_{answer.reason}")
    return Member(name, "scored", float(answer.holds), facts)


def _told(one: Judged) -> dict[str, Any]:
    """Return what is told of a reference, chosen or not."""
    return {
        "name": one.reference.name,
        "confirmed": one.reference.confirmed,
        **{str(mode): holds for mode, holds in one.holds.items()},
        "edit_distance": one.alignment.distance,
        "f1": one.counts.f1,
    }


def _alignment(chosen: Judged, considered: Considered) -> dict[str, Any]:
    steps, alignment = chosen.attempts.steps, entries(chosen)
    stretches = [
        {"trace_id": trace, "steps": len(list(run))} for trace, run in groupby(steps, attrgetter("trace_id")) if trace
    ]
    return {
        "expected_steps": authored(chosen.reference),
        "actual_steps": [step.name for step in steps],
        "ignored_steps": [step.name for step in considered.ignored],
        "total_steps": chosen.counts.required,
        "correct_steps": sum(entry["op"] == "match" and "optional" not in entry for entry in alignment),
        "edit_distance": chosen.alignment.distance,
        "steps": alignment,
        **({"traces": stretches} if len(stretches) > 1 else {}),
    }


def _sequence(seen: ForbiddenSeen) -> str | list[str]:
    return seen.sequence[0] if len(seen.sequence) == 1 else list(seen.sequence)


def _untold(chosen: Judged, answer: AnswerResult | None) -> Iterator[Gap]:
    """Yield a gap for each reason for which something could not be compared."""
    steps = chosen.attempts.steps
    for reason, said in _UNTOLD.items():
        found = [steps[at] for at, checks in chosen.checks.items() if any(check.reason == reason for check in checks)]
        if found:
            names = ", ".join(dict.fromkeys(step.name for step in found))
            span_ids = tuple(step.span_id for step in found if step.span_id)
            yield Gap(f"arguments_{reason}", f"Whether arguments of {names} are right is unknown: {said}.", span_ids)
    if answer is not None and answer.holds is None and answer.error is None:
        yield Gap(f"answer_{answer.reason}", "Whether the final answer is right is unknown.")


def _gap(gap: Gap) -> dict[str, Any]:
    return {"kind": gap.kind, "detail": gap.detail, "span_ids": list(gap.span_ids)}
