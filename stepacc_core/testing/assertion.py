"""The assertion that an agent took the steps it should have taken."""

from collections.abc import Mapping, Sequence
from typing import Any

from stepacc_core.errors import FailureCode, ScoringError
from stepacc_core.metrics.step_accuracy import step_accuracy
from stepacc_core.metrics.step_accuracy_config import ScoringMethod
from stepacc_core.metrics.trajectory_match import trajectory_match
from stepacc_core.model import CanonicalPartition, Result, Step
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
) -> None:
    """Fail with a picture of the alignment unless the observed steps are those expected.

    Args:
        expected: names in order, a list in the list for a group in any order, compared by `agent.step_accuracy`; or the
            mapping of an annotation `reference_trajectories`, by which `agent.trajectory_match` has to pass.
        observed: what the agent did: steps, names of tools, what the fixture `agent_steps` gives, or a partition.
        min_score: the score that is enough, from 0 to 1; with references it has no meaning and stays 1.
        scoring_method: as of `step_accuracy`.

    Raises:
        AssertionError: the score is lower, or no reference is met; the message is the picture.
        ScoringError: what is expected is not valid, which is a mistake in the test.
    """
    __tracebackhide__ = True
    steps = _steps(observed)
    if isinstance(expected, Mapping):
        result = _scored(trajectory_match(expected, steps))
        if not result.score:
            raise AssertionError(_message("No reference is met:", result, observed))
        return
    result = _scored(step_accuracy(expected, steps, scoring_method=scoring_method))
    if result.score is not None and result.score < min_score - _ROUNDING:
        said = f"The score is {result.score:.3f}, and {min_score:g} or more is asked for:"
        raise AssertionError(_message(said, result, observed))


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
