"""The registry of metrics, by name and version: the built-in ones, those of installed packages, and those registered.

Packages are looked at when a metric is first asked for, not on import: their metrics may import whatever they like.
"""

from threading import RLock
from typing import Any

from stepacc_core.errors import ConfigError, MetricPackageError, UnknownMetricError
from stepacc_core.metrics.base import Metric
from stepacc_core.metrics.entry_points import installed_metrics, refused

_METRICS: dict[tuple[str, str], Metric[Any]] = {}
_PROBLEMS: list[MetricPackageError] | None = None
"""What is wrong with metrics of installed packages; None until they are first looked at."""
_LOCK = RLock()  # a package may ask for a metric while its own is loaded


def register(metric: Metric[Any]) -> None:
    """Make a metric known under its manifest's name and version.

    Registering the same object again changes nothing.

    Raises:
        ConfigError: another metric holds that name and version.
    """
    key = (metric.manifest.name, metric.manifest.version)
    if _METRICS.setdefault(key, metric) is not metric:
        msg = f"Metric `{key[0]}` {key[1]} is already registered; give yours another name or version in its manifest."
        raise ConfigError(msg)


def get_metric(name: str, version: str | None = None) -> Metric[Any]:
    """Return a metric; the newest version unless one is named.

    Raises:
        UnknownMetricError: no such name or version; the message lists those that are registered, and says which
            packages have metrics that cannot be loaded.
    """
    problems = metric_problems()
    versions = {v: metric for (n, v), metric in _METRICS.items() if n == name}
    unloaded = "".join(f" {problem}" for problem in problems)
    if not versions:
        known = ", ".join(f"`{n}`" for n in sorted({n for n, _ in _METRICS}))
        msg = (
            f"There is no metric `{name}`; registered are {known}. Install the package that has it, or register your "
            f"own with `stepacc_core.register`.{unloaded}"
        )
        raise UnknownMetricError(msg)
    if version is None:
        return max(versions.values(), key=lambda metric: metric.manifest.version_key)
    if version not in versions:
        known = ", ".join(sorted(versions))
        msg = f"Metric `{name}` has no version `{version}`; registered are {known}.{unloaded}"
        raise UnknownMetricError(msg, "metric_version")
    return versions[version]


def registered_metrics() -> tuple[Metric[Any], ...]:
    """Return every registered metric, by name and then from oldest to newest version."""
    metric_problems()
    return tuple(sorted(_METRICS.values(), key=lambda metric: (metric.manifest.name, metric.manifest.version_key)))


def metric_problems() -> tuple[MetricPackageError, ...]:
    """Return what is wrong with the metrics of installed packages; one that is broken costs no other its place."""
    global _PROBLEMS  # noqa: PLW0603 (packages are looked at once in a process)
    with _LOCK:
        if _PROBLEMS is None:
            _PROBLEMS = []
            metrics, problems = installed_metrics()
            for installed in metrics:
                try:
                    register(installed.metric)
                except ConfigError as error:
                    problems.append(refused(installed.entry_point, error))
            _PROBLEMS = problems
        return tuple(_PROBLEMS)
