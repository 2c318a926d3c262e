"""The facts beside the efficiency row: what was repeated, what the run took, and which budgets it broke."""

from typing import Any

from stepacc_core.judging.judge import Judged
from stepacc_core.judging.run import Usage
from stepacc_core.judging.waste import loops, repeated_calls
from stepacc_core.references import Budget


def efficiency_facts(judged: Judged, usage: Usage, budget: Budget) -> dict[str, Any]:
    """Return the metadata of the efficiency row; indices are those of the observed steps that were compared."""
    steps = judged.attempts.steps
    repeats = repeated_calls(steps, judged.expected)
    counts = judged.counts
    spent = {"max_steps": len(steps), "max_tokens": usage.tokens, "max_cost_usd": usage.cost_usd}
    allowed = {name: limit for name in spent if (limit := getattr(budget, name)) is not None}
    return {
        "ratio": judged.efficiency_ratio,
        "required_steps": counts.required,
        "observed_steps": counts.observed,
        "matched_optional_steps": counts.matched_optional,
        "attempts": sum(judged.attempts.folded.values()),
        "repeated_identical_calls": sum(repeat.wasted for repeat in repeats),
        "repeats": [
            {
                "name": steps[repeat.first].name,
                "actual_index": repeat.first,
                "calls": repeat.calls,
                "wasted": repeat.wasted,
            }
            for repeat in repeats
        ],
        "loops": [
            {
                "block": [step.name for step in steps[loop.start : loop.start + loop.period]],
                "actual_index": loop.start,
                "times": loop.times,
            }
            for loop in loops(steps, judged.expected)
        ],
        "tokens": usage.tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
        "llm_spans": usage.llm_spans,
        "llm_spans_with_tokens": usage.with_tokens,
        "llm_spans_with_cost": usage.with_cost,
        "budget_breaches": [
            {"limit": name, "allowed": limit, "observed": found}
            for name, limit in allowed.items()
            if (found := spent[name]) is not None and found > limit
        ],
        "budget_not_recorded": [name for name in allowed if spent[name] is None],
    }
