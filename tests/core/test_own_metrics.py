"""What holds for a metric of anybody's own: its results, and when an evaluation counts as made before."""

import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from stepacc_core import CanonicalPartition, CanonicalSpan, Result, get_metric
from stepacc_core.errors import FailureCode, ResultError, ScoringError
from stepacc_core.metrics import evaluate
from stepacc_core.model import Failure, Member

SPAN = CanonicalSpan(
    "t", "s", "TOOL", "search", "root", 5, 9, tool_name="search", tool_arguments={"q": ["a", {"b": 1.5}]}
)
TRACE = CanonicalPartition("trace", "t", spans=(CanonicalSpan("t", "root", "AGENT", "helper", None, 1, 20), SPAN))
FAILURE = Failure("over_budget", "Too much.")
BESIDE: dict[str, dict[str, Any]] = {
    "scored": {"score": 0.5},
    "failed": {"error": FAILURE},
    "not_applicable": {"reason": "no_budget"},
}


class Config(BaseModel):
    """A config without fields."""


class Counting:
    """A metric that reads all of a trace."""

    manifest = get_metric("agent.step_accuracy").manifest
    config_model = Config

    def reference(self, partition: CanonicalPartition, config: Config) -> None:
        """Return no expectation."""

    def score(self, partition: CanonicalPartition, config: Config) -> Result:  # noqa: ARG002 (protocol)
        """Score by the number of spans."""
        return Result("scored", 1 / len(partition.spans))


class Frugal(Counting):
    """A metric that reads only how many spans there are, and of sessions nothing."""

    def observed(self, partition: CanonicalPartition) -> int:
        """Return the number of spans."""
        if partition.partition_type == "session":
            raise ScoringError(FailureCode.TOO_LARGE, "No.")
        return len(partition.spans)


def with_span(**changed: Any) -> CanonicalPartition:
    return replace(TRACE, spans=(TRACE.spans[0], replace(SPAN, **changed)))


@given(
    st.sampled_from(sorted(BESIDE)),
    st.fixed_dictionaries(
        {"score": st.none() | st.floats(), "error": st.just(FAILURE) | st.none(), "reason": st.none() | st.text()}
    ),
)
def test_a_result_says_one_thing_or_is_refused(status: Any, values: dict[str, Any]) -> None:
    given_beside = {name for name, value in values.items() if value is not None}
    if given_beside == set(BESIDE[status]):
        assert Result(status, **values).status == status
    else:
        with pytest.raises(ResultError, match=f"A result of status '{status}' has score"):
            Result(status, **values)


@pytest.mark.parametrize("status", BESIDE)
def test_a_member_of_a_family_says_one_thing_as_a_result_does(status: Any) -> None:
    member = Member("family.row", status, **BESIDE[status])
    assert (member.status, member.code) == (status, "over_budget" if status == "failed" else None)
    with pytest.raises(ResultError, match=f"A result of status '{status}' has score"):
        Member("family.row", status)


@pytest.mark.parametrize("score", ["0.5", True, [0.5], 1j])
def test_a_score_that_is_no_number_is_refused(score: Any) -> None:
    with pytest.raises(ResultError, match=r"is no number; give a float from 0 to 1") as caught:
        Result("scored", score)
    assert pickle.loads(pickle.dumps(caught.value)) == caught.value  # noqa: S301 (our own bytes)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ResultError, match="'skipped'"):
        Result("skipped", 0.5)  # type: ignore[arg-type]


def test_a_metric_has_codes_and_reasons_of_its_own() -> None:
    assert Result("failed", error=FAILURE).code == "over_budget"
    assert Result("not_applicable", reason="no_budget").reason == "no_budget"


@pytest.mark.parametrize(
    "changed",
    [
        {"end_time_unix_nano": 10},
        {"tool_arguments": {"q": []}},
        {"output": "x"},
        {"cost_usd": 0.1},
        {"status": "ERROR"},
    ],
)
def test_an_evaluation_is_another_when_anything_changed_that_the_metric_reads(changed: dict[str, Any]) -> None:
    before, after = TRACE, with_span(**changed)
    config = Config()
    assert evaluate(Counting(), before, config).steps_hash != evaluate(Counting(), after, config).steps_hash
    assert evaluate(Frugal(), before, config).steps_hash == evaluate(Frugal(), after, config).steps_hash
    steps = get_metric("agent.step_accuracy")
    assert {evaluate(steps, trace, steps.config_model()).steps_hash for trace in (before, after)} == {
        evaluate(steps, before, steps.config_model()).steps_hash
    }


def test_the_same_spans_are_the_same_evaluation_whatever_was_assumed_of_them() -> None:
    moved = replace(TRACE, session_id="other", task_id="other", gaps=())
    assert evaluate(Counting(), TRACE, Config()).steps_hash == evaluate(Counting(), moved, Config()).steps_hash


def test_what_cannot_be_read_has_no_hash() -> None:
    assert evaluate(Frugal(), replace(TRACE, partition_type="session"), Config()).steps_hash is None
