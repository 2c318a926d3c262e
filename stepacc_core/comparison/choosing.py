"""Choosing scores that may be put together: what was asked for must be one metric, version, config and type."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import get_args

from stepacc_core.comparison.observations import NEWEST, OLDEST, SHOWN_HASH, Selection
from stepacc_core.errors import ConfigError
from stepacc_core.model import PartitionType
from stepacc_core.shown import shown

_WINDOW = re.compile(r"\d{4}-\d{2}-\d{2}(-\d{2}:00)?", re.ASCII)
_DAY = len("2026-11-30")
_LEAST_PREFIX = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which scores are asked for; None where anything will do, as long as there is only one.

    Args:
        config_hash: the config's hash, or its beginning, four characters or more.
        first: key of the first window; empty: the oldest.
        last: key of the last, included; `~`: the newest.

    Raises:
        ConfigError: a window's key is none, the range is empty, or the beginning of a hash is too short.
    """

    source: str
    metric: str | None = None
    metric_version: str | None = None
    config_hash: str | None = None
    partition_type: PartitionType | None = None
    first: str = OLDEST
    last: str = NEWEST

    def __post_init__(self) -> None:
        """Refuse what cannot be looked for."""
        for name, key in (("from", self.first), ("to", self.last)):
            if key not in (OLDEST, NEWEST) and not _is_window(key):
                msg = f"{name} is {shown(key)}; write a window's key, as 2026-11-30 or 2026-11-30-14:00, in UTC."
                raise ConfigError(msg, name)
        if self.first > self.last:
            msg = f"There is no window from {self.first} to {self.last}; write the earlier key first."
            raise ConfigError(msg, "from")
        if self.config_hash is not None and len(self.config_hash) < _LEAST_PREFIX:
            msg = f"config is {shown(self.config_hash)}; give at least {_LEAST_PREFIX} characters of the hash."
            raise ConfigError(msg, "config")
        if self.partition_type not in (None, *get_args(PartitionType)):
            msg = f"type is {shown(self.partition_type)}; use {' or '.join(get_args(PartitionType))}."
            raise ConfigError(msg, "type")


def _is_window(key: str) -> bool:
    """Tell whether a key is that of a day or an hour that there is."""
    if not _WINDOW.fullmatch(key):
        return False
    try:
        datetime.fromisoformat(f"{key[:_DAY]}T{key[_DAY + 1 :] or '00:00'}")
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Group:
    """Current evaluations of one metric, version, config and type, and how many there are."""

    metric: str
    metric_version: str
    config_hash: str
    partition_type: PartitionType
    count: int

    def fits(self, wanted: Wanted) -> bool:
        """Tell whether these are of the metric, version and config that are asked for."""
        return (
            wanted.metric in (None, self.metric)
            and wanted.metric_version in (None, self.metric_version)
            and self.config_hash.startswith(wanted.config_hash or "")
        )


@dataclass(frozen=True, slots=True)
class Chosen:
    """The selection, how many evaluations it has, and how many of other types there are that it leaves out."""

    selection: Selection
    count: int = 0
    others: dict[PartitionType, int] = field(default_factory=dict)


def choose(wanted: Wanted, groups: Sequence[Group]) -> Chosen:
    """Return the one selection that is asked for.

    Traces are taken where there are traces and sessions and no type is asked for; what that leaves out is told. Where
    there is nothing, the selection is an empty one.

    Args:
        wanted: what is asked for.
        groups: what the source has in these windows.

    Raises:
        ConfigError: there are several metrics, versions or configs; the sentence lists them and says how to name one.
    """
    left = [group for group in groups if group.fits(wanted)]
    _refuse_several("metrics", "metric", wanted, left, lambda group: group.metric)
    _refuse_several("versions", "metric-version", wanted, left, lambda group: group.metric_version)
    _refuse_several("configs", "config", wanted, left, lambda group: group.config_hash[:SHOWN_HASH])
    _refuse_several("configs", "config", wanted, left, lambda group: group.config_hash)
    counts = {group.partition_type: group.count for group in left}
    kind = wanted.partition_type or ("session" if set(counts) == {"session"} else "trace")
    count = counts.pop(kind, 0)
    found = left[0] if left else None
    selection = Selection(
        source=wanted.source,
        metric=found.metric if found else wanted.metric or "",
        metric_version=found.metric_version if found else wanted.metric_version or "",
        config_hash=found.config_hash if found else wanted.config_hash or "",
        partition_type=kind,
        first=wanted.first,
        last=wanted.last,
    )
    return Chosen(selection, count, counts if wanted.partition_type is None else {})


def _refuse_several(
    plural: str, option: str, wanted: Wanted, groups: Iterable[Group], name_of: Callable[[Group], str]
) -> None:
    counts: dict[str, int] = {}
    for group in groups:
        counts[name_of(group)] = counts.get(name_of(group), 0) + group.count
    if len(counts) < 2:  # noqa: PLR2004 (one is what is asked for, none an empty selection)
        return
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
    what = " ".join(part for part in (wanted.metric, wanted.metric_version) if part)
    msg = (
        f"Source `{wanted.source}` has scores of several {plural}{f' of {what}' if what else ''} in this selection: "
        f"{listed}; they do not compare. Name one with --{option}."
    )
    raise ConfigError(msg, option)
