"""What of a run is judged: its steps, its answer, what it took, and what a reader had to assume."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stepacc_core.judging.answer import ended_with_error, final_answer
from stepacc_core.model import CanonicalPartition, Gap, Step
from stepacc_core.steps import collect_steps, traces_of

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the LLM spans of a run took; None, and never 0, where none of them recorded it.

    `with_tokens` and `with_cost` are how many of the `llm_spans` recorded any, so that a partial sum is seen as such.
    Costs are in US dollars.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    llm_spans: int = 0
    with_tokens: int = 0
    with_cost: int = 0

    @property
    def tokens(self) -> int | None:
        """Input and output tokens together."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)


@dataclass(frozen=True, slots=True)
class Run:
    """One run to be judged. `answer` is None where none was recorded; `crashed`, where it ended with an error."""

    steps: tuple[Step, ...]
    answer: Any = None
    task_id: str | None = None
    usage: Usage = field(default_factory=Usage)
    gaps: tuple[Gap, ...] = ()
    crashed: bool = False


def run_of(partition: CanonicalPartition) -> Run:
    """Take the run out of a trace or a session.

    Raises:
        ScoringError: `missing_start_time`.
    """
    return Run(
        steps=collect_steps(partition),
        answer=final_answer(partition),
        task_id=partition.task_id,
        usage=usage_of(partition),
        gaps=partition.gaps,
        crashed=ended_with_error(partition),
    )


def usage_of(partition: CanonicalPartition) -> Usage:
    """Sum what the LLM spans recorded, each span once."""
    models = [span for trace in traces_of(partition.spans) for span in trace.spans if span.kind == "LLM"]
    return Usage(
        input_tokens=_sum(span.input_tokens for span in models),
        output_tokens=_sum(span.output_tokens for span in models),
        cost_usd=_sum(span.cost_usd for span in models),
        llm_spans=len(models),
        with_tokens=sum(span.input_tokens is not None or span.output_tokens is not None for span in models),
        with_cost=sum(span.cost_usd is not None for span in models),
    )


def _sum(values: Iterable[Number | None]) -> Number | None:
    found = [value for value in values if value is not None]
    return sum(found) if found else None
