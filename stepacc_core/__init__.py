"""Score the steps an AI agent took against those it was expected to take.

Raw spans of any known trace convention become canonical spans, a partition (one trace or one session) becomes an
ordered sequence of steps, and a metric aligns it with the expected trajectory. `step_accuracy` and `trajectory_match`
do the last part for steps you already have; `get_metric` gives a versioned metric that scores whole partitions.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stepacc_core._version import __version__

if TYPE_CHECKING:
    from stepacc_core.errors import StepaccError
    from stepacc_core.metrics import get_metric, register, registered_metrics
    from stepacc_core.metrics.step_accuracy import step_accuracy
    from stepacc_core.metrics.trajectory_match import trajectory_match
    from stepacc_core.model import CanonicalPartition, CanonicalSpan, Result, Step
    from stepacc_core.partition_json import dump_partition, load_partition

__all__ = [
    "CanonicalPartition",
    "CanonicalSpan",
    "Result",
    "Step",
    "StepaccError",
    "__version__",
    "dump_partition",
    "get_metric",
    "load_partition",
    "register",
    "registered_metrics",
    "step_accuracy",
    "trajectory_match",
]

_HOMES = {
    "CanonicalPartition": "model",
    "CanonicalSpan": "model",
    "Result": "model",
    "Step": "model",
    "StepaccError": "errors",
    "dump_partition": "partition_json",
    "get_metric": "metrics",
    "load_partition": "partition_json",
    "register": "metrics",
    "registered_metrics": "metrics",
    "step_accuracy": "metrics.step_accuracy",
    "trajectory_match": "metrics.trajectory_match",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is asked for: a command line that needs one of them does not wait for all."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
