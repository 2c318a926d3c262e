"""The metrics and their registry.

The built-in metrics are registered on import. A package of your own names its metric in an entry point
(`stepacc_core.metrics.entry_points`); code that is no package registers it with `register`.
"""

from stepacc_core.metrics import step_accuracy, step_accuracy_v1, trajectory_match
from stepacc_core.metrics.base import Evaluation, Metric, Reference, build_config, config_hash, evaluate, reads_content
from stepacc_core.metrics.manifest import Manifest, load_manifest
from stepacc_core.metrics.registry import get_metric, metric_problems, register, registered_metrics
from stepacc_core.metrics.repeats import Evaluations

__all__ = [
    "Evaluation",
    "Evaluations",
    "Manifest",
    "Metric",
    "Reference",
    "build_config",
    "config_hash",
    "evaluate",
    "get_metric",
    "load_manifest",
    "metric_problems",
    "reads_content",
    "register",
    "registered_metrics",
]

for _module in (step_accuracy_v1, step_accuracy, trajectory_match):
    register(_module.get_trace_metric())
