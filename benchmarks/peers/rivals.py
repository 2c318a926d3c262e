"""Asks the other evaluators; run by the Python of their own environment, which has nothing of stepacc.

Prints one JSON object: the versions, by evaluator what it says of each input (a number, a truth value, or the name of
an error), and how many seconds one call takes for each number of steps. What cannot be imported is left out and named.
"""

import importlib
import importlib.metadata
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from inputs import SIZES, TINY, long_pair  # type: ignore[import-not-found]

Names = Sequence[str]
Evaluator = Callable[[Names, Names], Callable[[], Any]]
"""Given expected and observed names, whatever can be prepared is, and the call to time is returned."""

_PACKAGES = ("agentevals", "azure-ai-evaluation", "deepeval", "pydantic-evals", "ragas")
_LONGEST = 20.0
"""Seconds after which larger inputs are not tried any more."""
_ROUNDS = 5
_START = datetime(2026, 1, 1, tzinfo=UTC)


def agentevals() -> Iterator[tuple[str, Evaluator]]:
    """Yield the modes of agentevals, each call in a message of its own."""
    match = importlib.import_module("agentevals.trajectory.match")

    def messages(names: Names) -> list[dict[str, Any]]:
        calls = [{"function": {"name": name, "arguments": "{}"}} for name in names]
        return [
            {"role": "user", "content": "go"},
            *({"role": "assistant", "content": "", "tool_calls": [c]} for c in calls),
        ]

    for mode in ("strict", "unordered", "superset", "subset"):
        evaluate = match.create_trajectory_match_evaluator(trajectory_match_mode=mode)

        def prepare(expected: Names, observed: Names, evaluate: Any = evaluate) -> Callable[[], Any]:
            return lambda: evaluate(outputs=messages(observed), reference_outputs=messages(expected))["score"]

        yield f"agentevals {mode}", prepare


def azure() -> Iterator[tuple[str, Evaluator]]:
    """Yield the modes of azure-ai-evaluation's task navigation efficiency."""
    module = importlib.import_module("azure.ai.evaluation._evaluators._task_navigation_efficiency")

    def messages(names: Names) -> list[dict[str, Any]]:
        return [
            {
                "role": "assistant",
                "content": [{"type": "tool_call", "tool_call_id": f"call_{n}", "name": name, "arguments": {}}],
            }
            for n, name in enumerate(names)
        ]

    for mode in ("exact_match", "in_order_match", "any_order_match"):
        evaluate = module._TaskNavigationEfficiencyEvaluator(matching_mode=mode)  # noqa: SLF001 (its only name)

        def prepare(expected: Names, observed: Names, evaluate: Any = evaluate) -> Callable[[], Any]:
            response, truth = messages(observed), list(expected)
            return lambda: _azure_said(evaluate(response=response, ground_truth=truth))

        yield f"azure-ai-evaluation {mode}", prepare


def _azure_said(answer: dict[str, Any]) -> Any:
    [said] = [
        value
        for name, value in answer.items()
        if name in ("task_navigation_efficiency", "task_navigation_efficiency_score")
    ][:1]
    return said


def deepeval() -> Iterator[tuple[str, Evaluator]]:
    """Yield the modes of deepeval's tool correctness."""
    metrics, cases = importlib.import_module("deepeval.metrics"), importlib.import_module("deepeval.test_case")
    modes = {
        "exact": {"should_exact_match": True},
        "ordered": {"should_consider_ordering": True},
        "default": {},
    }
    for name, mode in modes.items():

        def prepare(expected: Names, observed: Names, mode: Any = mode) -> Callable[[], Any]:
            case = cases.LLMTestCase(
                input="go",
                actual_output="done",
                tools_called=[cases.ToolCall(name=each) for each in observed],
                expected_tools=[cases.ToolCall(name=each) for each in expected],
            )
            metric = metrics.ToolCorrectnessMetric(async_mode=False, include_reason=False, **mode)
            return lambda: metric.measure(case, _show_indicator=False)

        yield f"deepeval {name}", prepare


def pydantic_evals() -> Iterator[tuple[str, Evaluator]]:
    """Yield the modes of pydantic-evals' trajectory match, over a span tree."""
    agentic = importlib.import_module("pydantic_evals.evaluators.agentic")
    trees = importlib.import_module("pydantic_evals.otel.span_tree")

    def tree(names: Names) -> Any:
        made = trees.SpanTree()
        made.add_spans(
            [
                trees.SpanNode(
                    name=f"execute_tool {name}",
                    trace_id=1,
                    span_id=n + 1,
                    parent_span_id=None,
                    start_timestamp=_START + timedelta(seconds=n),
                    end_timestamp=_START + timedelta(seconds=n, milliseconds=1),
                    attributes={"gen_ai.tool.name": name},
                )
                for n, name in enumerate(names)
            ]
        )
        return made

    for order in ("exact", "in_order", "any_order"):

        def prepare(expected: Names, observed: Names, order: str = order) -> Callable[[], Any]:
            context = SimpleNamespace(span_tree=tree(observed))
            evaluator = agentic.TrajectoryMatch(list(expected), order=order)
            return lambda: evaluator.evaluate(context).value

        yield f"pydantic-evals {order}", prepare


def ragas() -> Iterator[tuple[str, Evaluator]]:
    """Yield ragas' accuracy in two forms, and its F1."""
    import asyncio  # noqa: PLC0415 (of this one only)

    metrics, samples = importlib.import_module("ragas.metrics"), importlib.import_module("ragas.dataset_schema")
    messages = importlib.import_module("ragas.messages")
    made = {
        "accuracy strict": metrics.ToolCallAccuracy(strict_order=True),
        "accuracy flexible": metrics.ToolCallAccuracy(strict_order=False),
        "F1": metrics.ToolCallF1(),
    }
    loop = asyncio.new_event_loop()
    for name, metric in made.items():

        def prepare(expected: Names, observed: Names, metric: Any = metric) -> Callable[[], Any]:
            calls = [messages.ToolCall(name=each, args={}) for each in observed]
            sample = samples.MultiTurnSample(
                user_input=[messages.HumanMessage(content="go"), messages.AIMessage(content="", tool_calls=calls)],
                reference_tool_calls=[messages.ToolCall(name=each, args={}) for each in expected],
            )
            return lambda: loop.run_until_complete(metric._multi_turn_ascore(sample, None))  # noqa: SLF001 (without its tracking)

        yield f"ragas {name}", prepare


def said(evaluator: Evaluator, expected: Names, observed: Names) -> Any:
    """Return what an evaluator says, or the name of its error."""
    try:
        answer = evaluator(expected, observed)()
    except Exception as error:  # noqa: BLE001 (whatever it raises is the answer)
        return type(error).__name__
    return answer if isinstance(answer, bool) else round(float(answer), 4)


def seconds(evaluator: Evaluator, steps: int) -> float | None:
    """Return the CPU seconds of one call, None where it fails."""
    try:
        call = evaluator(*long_pair(steps))
        call()
        times = []
        for _ in range(_ROUNDS):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
            if times[-1] > 1:
                break
    except Exception:  # noqa: BLE001 (a figure that cannot be had)
        return None
    return statistics.median(times)


def main() -> None:
    """Ask all, and print."""
    told: dict[str, Any] = {"versions": {}, "missing": {}, "said": {}, "seconds": {}}
    for package in _PACKAGES:
        try:
            told["versions"][package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError as error:
            told["missing"][package] = str(error)
    for family in (agentevals, azure, deepeval, pydantic_evals, ragas):
        try:
            for name, evaluator in family():
                told["said"][name] = {case: said(evaluator, *pair) for case, pair in TINY.items()}
                times: list[float | None] = []
                for steps in SIZES:
                    slow = bool(times) and (times[-1] is None or times[-1] > _LONGEST)
                    times.append(None if slow else seconds(evaluator, steps))
                told["seconds"][name] = times
        except (ImportError, AttributeError, ValueError, OSError) as error:
            told["missing"][family.__name__] = f"{type(error).__name__}: {error}"
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
