"""Which scores an export holds: metrics, each by one version and config, unless all are asked for by name."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from stepacc_core.comparison.observations import SHOWN_HASH
from stepacc_core.errors import ConfigError


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """Scores that compare with each other: those of one metric (or member of a family), version and config."""

    metric: str
    metric_version: str
    config_hash: str

    def __str__(self) -> str:
        """As people read it."""
        return f"{self.metric} {self.metric_version}, config {self.config_hash[:SHOWN_HASH]}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for among the kinds of scores that are stored.

    Attributes:
        source: the source, for an error to name.
        names: names that rows may have in the column `metric`; empty: any.
        metric_version: the version; None: any, as long as a metric has one.
        config_hash: the config's hash or its beginning; None: any, as long as a version has one.
        mixed: whether several versions and configs may come together.
    """

    source: str
    names: Collection[str] = ()
    metric_version: str | None = None
    config_hash: str | None = None
    mixed: bool = False


def choose_kinds(asked: Asked, stored: Iterable[Kind]) -> tuple[Kind, ...]:
    """Return the kinds of scores that are asked for, sorted.

    Raises:
        ConfigError: nothing stored is of that metric, version and config; or a metric has several versions, or a
            version several configs, that nobody asked to have together.
    """
    there = sorted(set(stored))
    found = tuple(
        kind
        for kind in there
        if (not asked.names or kind.metric in asked.names)
        and asked.metric_version in (None, kind.metric_version)
        and kind.config_hash.startswith(asked.config_hash or "")
    )
    if not found and there:
        msg = (
            f"Source `{asked.source}` has no scores by {_wanted(asked)} in these windows; it has those by "
            f"{'; '.join(map(str, there))}."
        )
        raise ConfigError(msg, "metric")
    if not asked.mixed:
        _refuse_several(asked.source, found)
    return found


def _refuse_several(source: str, found: Iterable[Kind]) -> None:
    by_metric: defaultdict[str, list[Kind]] = defaultdict(list)
    for kind in found:
        by_metric[kind.metric].append(kind)
    for metric, kinds in by_metric.items():
        if len(kinds) == 1:
            continue
        several = "versions" if len({kind.metric_version for kind in kinds}) > 1 else "configs"
        option = "metric-version" if several == "versions" else "config"
        msg = (
            f"Source `{source}` has scores by several {several} of {metric}, which do not compare: "
            f"{'; '.join(map(str, kinds))}. Name one with --{option}, or have them side by side with --all-versions."
        )
        raise ConfigError(msg, option)


def _wanted(asked: Asked) -> str:
    parts = [" or ".join(sorted(asked.names)) or "any metric"]
    if asked.metric_version is not None:
        parts.append(f"version {asked.metric_version}")
    if asked.config_hash is not None:
        parts.append(f"config {asked.config_hash}")
    return ", ".join(parts)
