"""Testing agents: the assertion, the pytest plugin, and the examples of docs/testing.md."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from stepacc_core import Step, step_accuracy
from stepacc_core.errors import ConfigError, ScoringError
from stepacc_core.model import CanonicalPartition, CanonicalSpan
from stepacc_core.picture import picture
from stepacc_core.policy import StepPolicy
from stepacc_core.reading import ReadSettings
from stepacc_core.testing import assert_trajectory
from stepacc_core.testing.capture import CapturedSteps, capturing
from stepacc_dagster.doors.otlp_protobuf import read_protobuf

pytest_plugins = ["pytester"]

DOC = (Path(__file__).parents[1] / "docs" / "testing.md").read_text()
TOOL = {"gen_ai.operation.name": "execute_tool"}
REFUND = {"references": [{"steps": ["lookup", {"tool": "refund", "args": {"amount": 25}}]}], "forbidden": ["delete"]}


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return [
        text for name, text in re.findall(r"^```(\w*)\n(.*?)^```$", DOC, re.MULTILINE | re.DOTALL) if name == language
    ]


def test_what_is_as_expected_passes() -> None:
    assert_trajectory(["a", ["b", "c"]], ["a", "c", "b"])
    assert_trajectory(["a", "b"], [Step("a"), Step("x")], min_score=0.5)
    assert_trajectory(["a", "b", "c"], ["a"], min_score=1 / 3)
    assert_trajectory(["a"], ["a", "x"], scoring_method="strict_position")
    assert_trajectory(REFUND, [Step("lookup"), Step("refund", arguments={"amount": 25.0})])


def test_the_failure_is_the_picture() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_trajectory(["a", "b"], ["a", "x"], min_score=0.75)

    drawn = picture(step_accuracy(["a", "b"], [Step("a"), Step("x")]))
    assert str(caught.value) == f"The score is 0.500, and 0.75 or more is asked for:\n\n{drawn}"


def test_references_that_are_not_met_fail_with_the_picture_of_the_nearest() -> None:
    with pytest.raises(AssertionError, match=r"(?s)^No reference is met:.*forbidden: delete;.verdict fail by"):
        assert_trajectory(REFUND, ["lookup", "delete", "refund"])


def test_a_partition_is_taken_by_its_steps() -> None:
    spans = [
        CanonicalSpan("t", "1", "AGENT", "root"),
        CanonicalSpan("t", "2", "TOOL", "a", "1", start_time_unix_nano=1),
    ]

    assert_trajectory(["a"], CanonicalPartition("trace", "t", spans=tuple(spans)))


def test_a_mistake_in_what_is_expected_is_no_failure_of_the_agent() -> None:
    with pytest.raises(ScoringError, match="hold no step"):
        assert_trajectory([], ["a"])
    with pytest.raises(ScoringError, match="cannot be used"):
        assert_trajectory({"reference": []}, ["a"])


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> TracerProvider:
    """The global tracer provider of a test."""
    made = TracerProvider(shutdown_on_exit=False)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: made)
    return made


@pytest.fixture
def captured(provider: TracerProvider) -> Iterator[CapturedSteps]:
    """What is captured from it."""
    assert trace.get_tracer_provider() is provider
    with capturing(ReadSettings(), StepPolicy()) as capture:
        yield capture


def run(provider: TracerProvider, *names: str) -> None:
    """Run an agent that calls tools."""
    tracer = provider.get_tracer("agent", "1.0")
    with tracer.start_as_current_span("invoke_agent x", attributes={"gen_ai.operation.name": "invoke_agent"}):
        for name in names:
            with tracer.start_as_current_span(f"execute_tool {name}", attributes=TOOL | {"gen_ai.tool.name": name}):
                pass


def test_steps_are_those_of_the_spans_that_ended_so_far(provider: TracerProvider, captured: CapturedSteps) -> None:
    run(provider, "a", "b")
    assert [step.name for step in captured] == ["a", "b"]
    run(provider, "c")
    assert (len(captured), captured[-1].name, [step.name for step in captured[:2]]) == (3, "c", ["a", "b"])
    captured.clear()
    assert list(captured) == []
    assert repr(captured) == "CapturedSteps([])"


def test_a_capture_ends_with_its_test_and_another_one_starts_empty(provider: TracerProvider) -> None:
    with capturing(ReadSettings(), StepPolicy()) as first:
        run(provider, "a")
    run(provider, "b")
    with capturing(ReadSettings(), StepPolicy(ignore=("d",))) as second:
        run(provider, "c", "d")

    assert [step.name for step in first] == ["a"]
    assert [step.name for step in second] == ["c"]


def test_nothing_captured_is_told_with_the_picture(captured: CapturedSteps) -> None:
    with pytest.raises(AssertionError, match=r"(?s)1 missing.*\nNo span was captured: the code under test made none"):
        assert_trajectory(["a"], captured)


def test_a_model_that_hides_its_calls_is_told_with_the_picture(
    provider: TracerProvider, captured: CapturedSteps
) -> None:
    announced = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["tool_calls"]}
    with provider.get_tracer("agent").start_as_current_span("chat gpt", attributes=announced):
        pass

    with pytest.raises(AssertionError, match=r"Of 1 captured spans none tells a step \(content_not_recorded\)"):
        assert_trajectory(["a"], captured)


def test_a_provider_without_processors_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", trace.NoOpTracerProvider)

    with (
        pytest.raises(ConfigError, match="is a NoOpTracerProvider, to which no span processor can be added"),
        capturing(ReadSettings(), StepPolicy()),
    ):
        pass


def test_captured_spans_are_what_otlp_would_have_brought(provider: TracerProvider, captured: CapturedSteps) -> None:
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("agent", "1.0")
    with tracer.start_as_current_span("outer", attributes={"text": "é", "n": 3, "x": 0.5, "yes": True}) as outer:
        outer.add_event("said", {"words": ["a", "b"]}, timestamp=5)
        outer.set_attribute("raw", b"\x00\xff")
        with pytest.raises(ZeroDivisionError), tracer.start_as_current_span("inner"):
            _ = 1 / 0

    brought = list(read_protobuf(iter([encode_spans(exporter.get_finished_spans()).SerializeToString()])))
    assert [span.name for span in captured.spans] == ["inner", "outer"]
    assert captured.spans[0].status == "ERROR"
    assert captured.spans == brought


def test_the_examples_do_what_the_page_says(pytester: pytest.Pytester) -> None:
    agent, tests, references, conftest = blocks("python")
    pytester.makepyfile(shop=agent, test_shop=tests, test_references=references)
    pytester.makeconftest(conftest)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(passed=2, failed=1)
    (shown,) = blocks("")
    printed = [line.rstrip() for line in result.outlines]
    start = printed.index(shown.splitlines()[0].rstrip())
    assert printed[start : start + len(shown.splitlines())] == [line.rstrip() for line in shown.splitlines()]
    assert not any("assertion.py" in line for line in printed)


def test_a_provider_that_is_set_already_keeps_its_exporters(pytester: pytest.Pytester) -> None:
    agent, tests, *_ = blocks("python")
    pytester.makepyfile(shop=agent, test_shop=tests)
    pytester.makeconftest("""
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        EXPORTER = InMemorySpanExporter()
        trace.set_tracer_provider(TracerProvider())
        trace.get_tracer_provider().add_span_processor(SimpleSpanProcessor(EXPORTER))

        def pytest_sessionfinish():
            print("exported", len(EXPORTER.get_finished_spans()))
    """)
    result = pytester.runpytest_subprocess("-s")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*exported 10"])


def test_a_test_run_without_the_fixture_imports_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_modules():
            assert {n for n in sys.modules if n.startswith("stepacc")} == {
                "stepacc_core", "stepacc_core._version", "stepacc_core.testing_plugin"
            }
            assert not {"opentelemetry", "pydantic", "yaml"} & set(sys.modules)
    """)
    pytester.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_without_the_sdk_the_fixture_says_what_to_install(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
        import sys

        sys.modules.pop("stepacc_core.testing.capture", None)
        sys.modules["opentelemetry.sdk.trace"] = None
    """)
    pytester.makepyfile("def test_steps(agent_steps): pass")
    result = pytester.runpytest_inprocess()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["*The fixture agent_steps needs the package opentelemetry.sdk.trace; run: pip install*"]
    )


def test_with_references_arguments_and_the_answer_have_to_be_right_too() -> None:
    paid = {"tool": "refund", "args": {"amount": 25}}
    references = {"references": [{"steps": [paid]}], "final_answer": {"contains": "done"}}

    def refund(amount: int) -> list[Step]:
        return [Step("refund", arguments={"amount": amount})]

    assert_trajectory(references, refund(25), final_answer="It is done.")
    for observed, answer, said in (
        (refund(99), "It is done.", "an argument is not as expected"),
        (["refund"], "It is done.", "an argument is not as expected"),
        (refund(25), "It is not.", "the final answer is not"),
        (refund(25), None, "The final answer cannot be checked"),
        (["other"], "It is done.", "No reference is met"),
    ):
        with pytest.raises(AssertionError, match=said):
            assert_trajectory(references, observed, final_answer=answer)
