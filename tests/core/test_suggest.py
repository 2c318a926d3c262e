"""Suggesting what a task's runs should do, from runs of which it is known."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepacc_core import CanonicalSpan, Step, step_accuracy
from stepacc_core.errors import ConfigError
from stepacc_core.metrics.trajectory_match import trajectory_match
from stepacc_core.model import CanonicalPartition, ToolCall
from stepacc_core.suggest import Run, Suggested, SuggestSettings, Unsteady, run_of, suggest
from tests.core.run_families import Noise, family, one_in, recovered

FAMILIES = 40


def runs(*names: str) -> list[Run]:
    """Runs whose steps are letters."""
    return [Run(tuple(map(Step, run))) for run in names]


@pytest.mark.parametrize(
    ("noise", "least"),
    [(Noise(0, 0, 0), 1.0), (one_in(0.1), 0.95), (Noise(0.1, 0.1, 0.1), 0.9)],
    ids=["no noise", "one step in ten disturbed", "one in ten dropped, one repeated, one added"],
)
def test_of_twenty_runs_the_true_trajectory_is_found(noise: Noise, least: float) -> None:
    found = [recovered(expected, suggest(made)) for expected, made in (family(seed, noise) for seed in range(FAMILIES))]

    assert sum(found) / FAMILIES >= least


@given(st.lists(st.text("abc", min_size=1, max_size=1), min_size=1, max_size=8), st.integers(1, 5))
def test_runs_that_are_all_alike_are_what_is_suggested(names: list[str], count: int) -> None:
    suggestion = suggest(runs("".join(names)) * count)

    assert suggestion.expected_steps() == names
    assert suggestion.fitting == suggestion.runs == count


@given(st.integers(0, 50), st.randoms(use_true_random=False))
@settings(max_examples=10)
def test_the_order_in_which_the_runs_are_given_is_nothing(seed: int, random: Random) -> None:
    _, made = family(seed, one_in(0.2), runs=8)
    shuffled = random.sample(made, len(made))

    assert suggest(shuffled) == suggest(made)


def test_order_that_varies_makes_a_group_and_once_in_ten_is_no_variation() -> None:
    assert suggest(runs("sabe", "sbae", "sabe")).expected_steps() == ["s", ["a", "b"], "e"]
    assert suggest(runs(*["sabe"] * 9, "sbae")).expected_steps() == ["s", "a", "b", "e"]
    often = SuggestSettings(varies_from=0.1)
    assert suggest(runs(*["sabe"] * 9, "sbae"), often).expected_steps() == ["s", ["a", "b"], "e"]


def test_steps_of_too_few_runs_are_optional_in_a_reference_and_left_out_of_expected_steps() -> None:
    made = runs(*["abc"] * 6, *["axbc"] * 3, "aybc")
    suggestion = suggest(made)

    assert suggestion.expected_steps() == ["a", "b", "c"]
    assert suggestion.reference() == [{"tool": "a"}, {"tool": "x", "optional": True}, {"tool": "b"}, {"tool": "c"}]
    assert [(member.name, member.support) for element in suggestion.elements for member in element.members] == [
        *(("a", 10), ("x", 3), ("b", 10), ("c", 10)),
    ]
    assert (suggestion.runs, suggestion.fitting) == (10, 6)
    assert suggest(made, SuggestSettings(share=0.3)).expected_steps() == ["a", "x", "b", "c"]
    assert suggest(made, SuggestSettings(optional_share=0.4)).reference() == [{"tool": name} for name in "abc"]


def test_an_optional_step_joins_the_one_step_or_group_to_which_its_order_varies() -> None:
    suggestion = suggest(runs(*["abc"] * 6, "axbc", "abxc", "axbc", "abxc"))

    group = {"any_order": [{"tool": "b"}, {"tool": "x", "optional": True}]}
    assert suggestion.reference() == [{"tool": "a"}, group, {"tool": "c"}]
    assert suggestion.expected_steps() == ["a", "b", "c"]
    assert suggestion.elements[1].reason == "their order varies"


def test_an_optional_step_without_a_place_is_told_and_left_out() -> None:
    suggestion = suggest(runs(*["abcd"] * 6, "xabcd", "abcdx", "abxcd", "xabcd"))

    assert suggestion.unsteady == (Unsteady("x", "TOOL", 4),)
    assert suggestion.reference() == [{"tool": name} for name in "abcd"]


def test_agents_stay_agents_and_tools_are_one_however_they_are_written() -> None:
    made = [
        Run((Step("Get-Weather"), Step("Billing agent", kind="AGENT"))),
        Run((Step("get_weather"), Step("Billing agent", kind="AGENT"))),
        Run((Step("get_weather"), Step("billing_agent", kind="AGENT"))),
    ]
    suggestion = suggest(made)

    assert suggestion.reference() == [{"tool": "get_weather"}, {"agent": "Billing agent"}]
    assert suggestion.elements[0].members == (Suggested("get_weather", "TOOL", 3),)


def span(ident: str, start: int, end: int, parent: str = "r", kind: str = "TOOL") -> CanonicalSpan:
    """A span that is called as its id."""
    return CanonicalSpan("t", ident, kind, ident, parent, start, end)  # type: ignore[arg-type]


def partition(*spans: CanonicalSpan) -> CanonicalPartition:
    """A trace of an agent."""
    return CanonicalPartition("trace", "t", spans=(CanonicalSpan("t", "r", "AGENT", "root"), *spans))


def test_spans_that_overlap_in_time_make_a_group_though_their_order_never_varies() -> None:
    apart = run_of(partition(span("a", 1, 2), span("b", 2, 3), span("c", 4, 9)))
    overlapping = run_of(partition(span("a", 1, 3), span("b", 2, 5), span("c", 5, 9)))

    assert apart.parallel == frozenset()
    assert overlapping.parallel == {(0, 1)}
    suggestion = suggest([overlapping, overlapping, apart])
    assert suggestion.expected_steps() == [["a", "b"], "c"]
    assert suggestion.elements[0].reason == "they run at the same time"
    assert suggest([overlapping, apart, apart]).expected_steps() == ["a", "b", "c"]


def test_an_agent_and_what_it_does_run_one_after_the_other() -> None:
    nested = run_of(
        partition(
            span("w", 1, 9, kind="AGENT"),
            span("a", 2, 5, "w"),
            span("b", 6, 8, "model"),
            span("model", 5, 9, "w", "LLM"),
        )
    )

    assert nested.parallel == frozenset()
    assert suggest([nested]).expected_steps() == ["w", "a", "b"]


def test_calls_that_one_completion_asks_for_run_at_the_same_time() -> None:
    asked = CanonicalSpan("t", "1", "LLM", "chat", "r", 1, 2, tool_calls=(ToolCall("a"), ToolCall("b")))
    later = CanonicalSpan("t", "2", "LLM", "chat", "r", 3, 4, tool_calls=(ToolCall("c"),))

    assert run_of(partition(asked, later)).parallel == {(0, 1)}
    assert suggest([run_of(partition(asked, later))]).expected_steps() == [["a", "b"], "c"]


def test_both_forms_hold_for_the_runs_they_are_made_from() -> None:
    _, made = family(3, Noise(0, 0, 0))
    suggestion = suggest(made)

    for one in made:
        assert step_accuracy(suggestion.expected_steps(), one.steps).score == 1
        assert trajectory_match({"references": [{"steps": suggestion.reference()}]}, one.steps).score == 1


def test_nothing_to_learn_from_is_refused_in_words() -> None:
    with pytest.raises(ConfigError, match="There is no run to learn from"):
        suggest([])
    with pytest.raises(ConfigError, match=r"No step is in 50% of the 3 runs"):
        suggest(runs("a", "b", "c"))
    with pytest.raises(ConfigError, match="`share` is 0"):
        SuggestSettings(share=0)
    with pytest.raises(ConfigError, match=r"`optional_share` is 0\.5, above `share`, 0\.4"):
        SuggestSettings(share=0.4, optional_share=0.5)
