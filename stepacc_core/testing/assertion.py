"""The assertion that an agent took the steps it should have taken."""

from collections.abc import Mapping, Sequence
from typing import Any

from stepacc_core.errors import FailureCode, ScoringError
from stepacc_core.metrics.step_accuracy import step_accuracy
from stepacc_core.metrics.step_accuracy_config import ScoringMethod
from stepacc_core.metrics.trajectory_match import trajectory_match
from stepacc_core.model import CanonicalPartition, Member, Result, Step
from stepacc_core.picture import picture
from stepacc_core.steps import collect_steps

_ROUNDING = 1e-9
"""A score that is as high as asked for but for the last bit is high enough."""


def assert_trajectory(
    expected: Any,
    observed: Sequence[Step | str] | CanonicalPartition,
    min_score: float = 1.0,
    *,
    scoring_method: ScoringMethod = "edit_distance",
    final_answer: Any = None,
) -> None:
    """Fail with a picture of the alignment unless the observed steps are those expected.

    Args:
        expected: names in order, a list in the list for a group in any order, compared by `agent.step_accuracy`; or the
            mapping of an annotation `reference_trajectories`: by `agent.trajectory_match` the path has to pass, and
            every check of an argument and of the final answer has to hold.
        observed: what the agent did: steps, names of tools, what the fixture `agent_steps` gives, or a partition.
        min_score: the score that is enough, from 0 to 1; with references it has no meaning and stays 1.
        scoring_method: as of `step_accuracy`.
        final_answer: what the agent answered, for references that check it.

    Raises:
        AssertionError: the score is lower, no reference is met, or a check does not hold or cannot be made; the message
            is the picture.
        ScoringError: what is expected is not valid, which is a mistake in the test.
    """
    __tracebackhide__ = True
    steps = _steps(observed)
    if isinstance(expected, Mapping):
        result = _scored(trajectory_match(expected, steps, final_answer=final_answer))
        if fault := _fault(result):
            raise AssertionError(_message(fault, result, observed))
        return
    result = _scored(step_accuracy(expected, steps, scoring_method=scoring_method))
    if result.score is not None and result.score < min_score - _ROUNDING:
        said = f"The score is {result.score:.3f}, and {min_score:g} or more is asked for:"
        raise AssertionError(_message(said, result, observed))


def _fault(result: Result) -> str | None:
    """Return what is wrong with a run that was judged by references, None where nothing is."""
    if not result.score:
        return "No reference is met:"
    arguments, answer = _member(result, "arguments"), _member(result, "final_answer")
    if arguments.score is not None and arguments.score < 1:
        return "The path is right, and an argument is not as expected:"
    if arguments.status != "scored" and arguments.reason != "no_argument_checks":
        return f"The path is right, and its arguments cannot be checked ({arguments.reason or arguments.error}):"
    if answer.score is not None and answer.score < 1:
        return "The path is right, and the final answer is not:"
    if answer.status != "scored" and answer.reason != "no_final_answer_check":
        return f"The final answer cannot be checked ({answer.reason or answer.error}); give it as `final_answer`:"
    return None


def _member(result: Result, name: str) -> Member:
    [found] = [member for member in result.family if member.name == f"trajectory_match.{name}"]
    return found


def _steps(observed: Sequence[Step | str] | CanonicalPartition) -> list[Step]:
    found = collect_steps(observed) if isinstance(observed, CanonicalPartition) else observed
    return [Step(step) if isinstance(step, str) else step for step in found]


def _scored(result: Result) -> Result:
    __tracebackhide__ = True
    if result.error:
        raise ScoringError(FailureCode(result.error.code), result.error.message)
    return result


def _message(said: str, result: Result, observed: Any) -> str:
    notes = [f"\n{note}" for note in getattr(observed, "notes", ())]
    return f"{said}\n\n{picture(result)}" + "".join(notes)
