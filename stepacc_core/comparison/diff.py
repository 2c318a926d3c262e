"""What changed between two sides of scores: on average, and in which traces or tasks and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stepacc_core.comparison.causes import Cause, causes
from stepacc_core.comparison.intervals import Change, change_over
from stepacc_core.comparison.observations import Counts, Observation, Selection
from stepacc_core.comparison.pairing import Pair, PairedBy, Pairing, pair_occurrences, pair_tasks
from stepacc_core.errors import ConfigError
from stepacc_core.model import Status

PASSES_AT = 1.0
"""Score from which an occurrence passes where nobody says otherwise: everything was as expected."""

_TIE = 1e-9
"""Scores that differ by less are the same; such differences are of rounding."""

Flip = Literal["broke", "mended"]
Dimension = Literal["source", "version", "config", "windows"]


@dataclass(frozen=True, slots=True)
class Changed:
    """A pair whose score changed.

    Attributes:
        flip: `broke` where only the first side passes, `mended` where only the second does; None where neither, or
            both.
        before: the evaluation that stands for the first side: of several runs the best where the score fell, the worst
            where it rose.
        after: that of the second: the worst where the score fell, the best where it rose.
        causes: why these two differ.
    """

    pair: Pair
    flip: Flip | None
    before: Observation
    after: Observation
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class OneSided:
    """An occurrence that is scored on one side only, and what it is on the other; None: it is not there at all."""

    scored: Observation
    other_status: Status | None


@dataclass(frozen=True, slots=True)
class Diff:
    """Two sides of scores, compared.

    Attributes:
        differs: in what the sides differ; the change can be put down to it only where that is one thing.
        change: mean change over the pairs; None where nothing pairs.
        other_change: mean change over what was measured against different expectations, apart from the pairs.
        changed: pairs whose score changed, the largest change first.
        before_only: scored on the first side only.
        after_only: scored on the second side only.
    """

    before: Selection
    after: Selection
    before_counts: Counts
    after_counts: Counts
    differs: tuple[Dimension, ...]
    pairing: Pairing
    change: Change | None
    other_change: Change | None
    changed: tuple[Changed, ...]
    before_only: tuple[OneSided, ...]
    after_only: tuple[OneSided, ...]

    def rose(self) -> int:
        """Count the pairs whose score rose."""
        return sum(each.pair.change > 0 for each in self.changed)

    def fell(self) -> int:
        """Count the pairs whose score fell."""
        return sum(each.pair.change < 0 for each in self.changed)

    def flipped(self, flip: Flip) -> int:
        """Count the pairs that flipped."""
        return sum(each.flip == flip for each in self.changed)


def pairing_of(before: Selection, after: Selection) -> PairedBy:
    """Return how two sides are paired where nobody says.

    The same traces or sessions are on both sides when source and windows are the same; else there are other runs, and
    what they have in common is their task.

    Raises:
        ConfigError: the sides are the same, share windows of the same scores, or are of different metrics or types.
    """
    kinds = {(each.metric, each.partition_type) for each in (before, after) if each.metric}
    if len(kinds) > 1:
        msg = f"{before} and {after} are of different metrics or types, which do not compare; name one for both sides."
        raise ConfigError(msg)
    differs = differences(before, after)
    if not differs:
        msg = f"Both sides are {before}; let them differ in version, config, windows (from, to) or source."
        raise ConfigError(msg)
    if differs == ("windows",) and before.first <= after.last and after.first <= before.last:
        msg = (
            f"The sides share windows ({before.windows}; {after.windows}), so the same scores would be on both; choose "
            "windows that do not overlap."
        )
        raise ConfigError(msg)
    return "task" if {"source", "windows"} & set(differs) else "occurrence"


def refuse_other_version(before: Selection, after: Selection) -> None:
    """Refuse sides by different versions, where nobody asked for versions.

    Raises:
        ConfigError: both sides hold scores, by different versions.
    """
    old, new = before.metric_version, after.metric_version
    if old and new and old != new:
        msg = (
            f"The scores before are by version {old} and those after by {new}, which were not asked for; choose one "
            f"with --metric-version, or compare them by name (version={old} and version={new} on the sides)."
        )
        raise ConfigError(msg, "metric-version")


def differences(before: Selection, after: Selection) -> tuple[Dimension, ...]:
    """Return in what two selections of one metric differ; another version has another config in any case."""
    compared: tuple[tuple[Dimension, bool], ...] = (
        ("source", before.source != after.source),
        ("version", before.metric_version != after.metric_version),
        ("config", before.metric_version == after.metric_version and before.config_hash != after.config_hash),
        ("windows", (before.first, before.last) != (after.first, after.last)),
    )
    return tuple(name for name, differs in compared if differs)


def diff(  # noqa: PLR0913 (two sides, and how they are compared)
    before: Selection,
    after: Selection,
    first: Sequence[Observation],
    second: Sequence[Observation],
    *,
    by: PairedBy | None = None,
    passes_at: float = PASSES_AT,
) -> Diff:
    """Compare two sides of scores.

    Args:
        before: which scores the first side is.
        after: which the second is.
        first: the evaluations of the first side.
        second: those of the second.
        by: how they are paired; as `pairing_of` says where left out.
        passes_at: score from which an occurrence, or the mean of a task, passes.

    Raises:
        ConfigError: as `pairing_of`, or `passes_at` is no score.
    """
    if not 0 <= passes_at <= 1:
        msg = f"pass-at is {passes_at}; use a score from 0 to 1."
        raise ConfigError(msg, "pass-at")
    own = pairing_of(before, after)
    pairing = (pair_occurrences if (by or own) == "occurrence" else pair_tasks)(first, second)
    moved = [pair for pair in pairing.pairs if abs(pair.change) > _TIE]
    return Diff(
        before=before,
        after=after,
        before_counts=Counts.of(first),
        after_counts=Counts.of(second),
        differs=differences(before, after),
        pairing=pairing,
        change=change_over(pairing.pairs),
        other_change=change_over(pairing.other_reference),
        changed=tuple(
            _changed(pair, before, after, passes_at)
            for pair in sorted(moved, key=lambda pair: (-abs(pair.change), pair.name))
        ),
        before_only=_one_sided(pairing.before_only, second),
        after_only=_one_sided(pairing.after_only, first),
    )


def _changed(pair: Pair, before: Selection, after: Selection, passes_at: float) -> Changed:
    passed = [mean >= passes_at - _TIE for mean in pair.means]
    flip: Flip | None = None
    if passed == [True, False]:
        flip = "broke"
    elif passed == [False, True]:
        flip = "mended"
    sign = 1 if pair.change > 0 else -1
    first = min(pair.before, key=lambda each: (sign * (each.score or 0.0), each.partition_id))
    second = min(pair.after, key=lambda each: (-sign * (each.score or 0.0), each.partition_id))
    return Changed(pair, flip, first, second, causes(first, second, before, after))


def _one_sided(alone: Sequence[Observation], other: Sequence[Observation]) -> tuple[OneSided, ...]:
    there = {each.occurrence: each.status for each in other}
    return tuple(OneSided(each, there.get(each.occurrence)) for each in alone)
