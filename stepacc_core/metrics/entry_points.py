"""Metrics of installed packages, found by their entry points.

A package names its metric in the group `stepacc.metrics`:

```toml
[project.entry-points."stepacc.metrics"]
tool_budget = "mycompany.tool_budget:ToolBudget"
```

The object is called without arguments and gives a metric: a class, or a function. Each version that a package keeps
has an entry point of its own; their names are only shown in messages.
"""

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from inspect import isclass
from typing import Any

from pydantic import BaseModel

from stepacc_core.errors import ManifestError, MetricPackageError, StepaccError
from stepacc_core.metrics.base import Metric
from stepacc_core.metrics.manifest import Manifest

GROUP = "stepacc.metrics"


@dataclass(frozen=True, slots=True)
class InstalledMetric:
    """A metric and the entry point it came from."""

    metric: Metric[Any]
    entry_point: EntryPoint


def installed_metrics() -> tuple[list[InstalledMetric], list[MetricPackageError]]:
    """Load the metrics of all installed packages, and say of each entry point that gives none what is wrong with it."""
    metrics: list[InstalledMetric] = []
    problems: list[MetricPackageError] = []
    for entry_point in sorted(entry_points(group=GROUP), key=lambda found: (found.name, found.value)):
        try:
            metrics.append(InstalledMetric(_load(entry_point), entry_point))
        except Exception as error:  # noqa: BLE001 (whatever a package does, the other metrics are there)
            problems.append(refused(entry_point, error))
    return metrics, problems


def refused(entry_point: EntryPoint, error: Exception) -> MetricPackageError:
    """Return the error that says which package has the entry point, what is wrong, and what to do."""
    said = " ".join(str(error).split()).rstrip(".")
    reason = said if isinstance(error, StepaccError) else f"{type(error).__name__}: {said}"
    package = f"{entry_point.dist.name} {entry_point.dist.version}" if entry_point.dist else "an unknown package"
    return MetricPackageError(package, entry_point.name, entry_point.value, reason)


def _load(entry_point: EntryPoint) -> Metric[Any]:
    metric = entry_point.load()()
    manifest = getattr(metric, "manifest", None)
    if not isinstance(manifest, Manifest):
        msg = f"its manifest is {type(manifest).__name__}, not what `load_manifest` returns"
        raise ManifestError(msg)
    named = f"{entry_point.module}.{entry_point.attr}"
    if manifest.entrypoint != named:
        msg = f"its manifest says entrypoint `{manifest.entrypoint}`, and the entry point is `{named}`"
        raise ManifestError(msg)
    config_model = getattr(metric, "config_model", None)
    if not (isclass(config_model) and issubclass(config_model, BaseModel)):
        msg = "its config_model is no pydantic model"
        raise ManifestError(msg)
    lacking = [f"`{name}`" for name in ("reference", "score") if not callable(getattr(metric, name, None))]
    if lacking:
        msg = f"it has no method {' and '.join(lacking)}"
        raise ManifestError(msg)
    checked: Metric[Any] = metric
    return checked
