"""The registry of metrics, by name and version."""

from typing import Any

from stepacc_core.errors import ConfigError, UnknownMetricError
from stepacc_core.metrics.base import Metric

_METRICS: dict[tuple[str, str], Metric[Any]] = {}


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
        UnknownMetricError: no such name or version; the message lists those that are registered.
    """
    versions = {v: metric for (n, v), metric in _METRICS.items() if n == name}
    if not versions:
        known = ", ".join(f"`{n}`" for n in sorted({n for n, _ in _METRICS}))
        msg = f"There is no metric `{name}`; registered are {known}. Register your own with `stepacc_core.register`."
        raise UnknownMetricError(msg)
    if version is None:
        return max(versions.values(), key=lambda metric: metric.manifest.version_key)
    if version not in versions:
        known = ", ".join(sorted(versions))
        msg = f"Metric `{name}` has no version `{version}`; registered are {known}."
        raise UnknownMetricError(msg)
    return versions[version]


def registered_metrics() -> tuple[Metric[Any], ...]:
    """Return every registered metric, by name and then from oldest to newest version."""
    return tuple(sorted(_METRICS.values(), key=lambda metric: (metric.manifest.name, metric.manifest.version_key)))
