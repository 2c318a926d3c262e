"""`agent.step_accuracy` 1.0.0: the metric's first form, position by position (contract, section 10)."""

from stepacc_core.metrics.step_accuracy import StepAccuracy
from stepacc_core.metrics.step_accuracy_config import StrictPositionConfig


def get_trace_metric() -> StepAccuracy:
    """Return the metric: its manifest, config model and scorer."""
    return _METRIC


_METRIC = StepAccuracy("manifests/agent.step_accuracy-1.0.0.yaml", StrictPositionConfig)
