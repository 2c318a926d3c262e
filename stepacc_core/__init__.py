"""Score the steps an AI agent took against those it was expected to take.

Raw spans of any known trace convention become canonical spans, a partition (one trace or one session) becomes an
ordered sequence of steps, and a metric aligns it with the expected trajectory. `step_accuracy` does the last part for
steps you already have; `get_metric` gives a versioned metric that scores whole partitions.
"""

from stepacc_core._version import __version__
from stepacc_core.errors import StepaccError
from stepacc_core.metrics import get_metric, register, registered_metrics
from stepacc_core.metrics.step_accuracy import step_accuracy
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
]
