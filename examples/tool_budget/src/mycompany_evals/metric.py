"""`mycompany.tool_budget`: did the agent make do with the tool calls it may take?"""

from collections import Counter

from pydantic import BaseModel, ConfigDict, Field

from stepacc_core import CanonicalPartition, Result
from stepacc_core.errors import ScoringError
from stepacc_core.metrics import load_manifest
from stepacc_core.model import Failure
from stepacc_core.steps import collect_steps, not_applicable_reason


class ToolBudgetConfig(BaseModel):
    """Config of the metric; what a source sets under `config` in its `defs.yaml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_calls: int = Field(default=5, ge=1, description="Tool calls that cost nothing.")


class ToolBudget:
    """The scorer."""

    manifest = load_manifest("mycompany_evals", "manifests/tool_budget.yaml", ToolBudgetConfig)
    config_model = ToolBudgetConfig

    def reference(self, partition: CanonicalPartition, config: ToolBudgetConfig) -> None:
        """Return no expectation: the budget is part of the config, and nobody annotates it."""

    def observed(self, partition: CanonicalPartition) -> list[str]:
        """Return what the score depends on; a trace whose tool calls stay the same is not scored anew."""
        return [step.name for step in collect_steps(partition) if step.kind == "TOOL"]

    def score(self, partition: CanonicalPartition, config: ToolBudgetConfig) -> Result:
        """Score one trace or session; what is wrong with it is a status of the result, never an exception."""
        if reason := not_applicable_reason(partition):
            return Result("not_applicable", reason=reason)
        try:
            calls = self.observed(partition)
        except ScoringError as error:
            return Result("failed", error=Failure(error.code, error.message))
        score = min(1.0, config.max_calls / len(calls)) if calls else 1.0
        return Result("scored", score, {"calls": len(calls), "by_tool": dict(Counter(calls))})
