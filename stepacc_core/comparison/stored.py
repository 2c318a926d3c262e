"""What is stored of a source, for people who asked for scores that are not there."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from stepacc_core.comparison.choosing import Group, Wanted
from stepacc_core.comparison.observations import SHOWN_HASH

_Part = Literal["metric", "metric_version", "config_hash"]
_PARTS: tuple[tuple[_Part, str], ...] = (
    ("metric", "metric"),
    ("metric_version", "version"),
    ("config_hash", "config"),
)


def not_stored(wanted: Wanted, stored: Sequence[Group]) -> str | None:
    """Say what there is instead of the metric, version or config that is asked for.

    Args:
        wanted: what is asked for.
        stored: what the source has in all its windows.

    Returns:
        A sentence that lists what is stored; None where what is asked for is, in whatever windows.
    """
    if not stored:
        return f"Source `{wanted.source}` has no scores."
    if any(group.fits(wanted) for group in stored):
        return None
    kept = [{part: getattr(wanted, part) for part, _ in _PARTS[:count]} for count in range(len(_PARTS) + 1)]
    # With the first parts alone something is stored, and with one more there is nothing.
    count = next(count for count, parts in enumerate(kept) if not _fitting(wanted.source, parts, stored)) - 1
    part, noun = _PARTS[count]
    of = " ".join(each for each in kept[count].values() if each)
    return (
        f"Source `{wanted.source}` has no scores{f' of {of}' if of else ''} by {noun} {getattr(wanted, part)}; stored "
        f"are {_listed(_fitting(wanted.source, kept[count], stored), part)}."
    )


def _fitting(source: str, parts: dict[_Part, str | None], stored: Sequence[Group]) -> list[Group]:
    wanted = Wanted(source, **parts)  # type: ignore[arg-type] # none of them is the type of partition
    return [group for group in stored if group.fits(wanted)]


def _listed(groups: Sequence[Group], part: _Part) -> str:
    counts: Counter[str] = Counter()
    for group in groups:
        name = getattr(group, part)
        counts[name[:SHOWN_HASH] if part == "config_hash" else name] += group.count
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
