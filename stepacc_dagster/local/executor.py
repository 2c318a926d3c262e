"""The executor of local runs: the process of a run takes its steps, and is noted with the run.

Dagster's launcher for one machine does not know whether a run's process lives: where its daemon was killed together
with the processes it had started, a run would count as going on for ever.
"""

from collections.abc import Callable, Iterator
from typing import Any, cast

import dagster as dg

from stepacc_dagster.local.dead_runs import process_tags


class _NotedInProcess(dg.Executor):
    """An executor of Dagster's, which notes the process before the first step."""

    def __init__(self, inner: dg.Executor) -> None:
        self._inner = inner

    @property
    def retries(self) -> Any:
        """What Dagster is to do about steps that ask for a retry."""
        return self._inner.retries

    def execute(self, plan_context: Any, execution_plan: Any) -> Iterator[Any]:
        """Yield the events of all steps."""
        plan_context.instance.add_run_tags(plan_context.run_id, process_tags(plan_context.run_id))
        return self._inner.execute(plan_context, execution_plan)


def _create(context: dg.InitExecutorContext) -> dg.Executor:
    create = dg.in_process_executor.executor_creation_fn
    return _NotedInProcess(cast("Callable[[dg.InitExecutorContext], dg.Executor]", create)(context))


noted_in_process_executor = dg.ExecutorDefinition(
    name=dg.in_process_executor.name,
    config_schema=dg.in_process_executor.config_schema.as_field(),
    executor_creation_fn=_create,
    description="Takes all steps in the process of the run, and notes which process that is.",
)
"""The executor, under the name and with the config of Dagster's own."""
