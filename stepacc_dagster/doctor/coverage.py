"""Checks of what a source's scores cover: what has none and why, what nobody annotated, what is still going on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from stepacc_core.model import PartitionType
from stepacc_dagster.cli.output import counted
from stepacc_dagster.doctor.findings import Finding
from stepacc_dagster.doctor.wording import lasting

_GOOD = 0.9
_POOR = 0.5
"""Coverage from which on it is as it should be, and below which it is a warning."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Coverage:
    """What became of the occurrences of a source by one version and config of its metric.

    Attributes:
        metric: name of the metric.
        version: its version.
        config_hash: its config.
        present: whether the source is scored by these now.
        windows: windows it has scored.
        scored: occurrences with a score.
        failed: those that could not be scored.
        not_applicable: those to which the metric does not apply.
        skipped: those nobody annotated, left out by the source's setting.
        unsettled: those left out since they were still going on.
        rows: rows that `stepacc scores` shows of it; None where nobody counted them, as where they are very many.
        erased: those of them whose trace or session was erased.
    """

    metric: str
    version: str
    config_hash: str
    present: bool
    windows: int
    scored: int
    failed: int
    not_applicable: int
    skipped: int
    unsettled: int
    rows: int | None = None
    erased: int = 0

    @property
    def occurrences(self) -> int:
        """All that have settled."""
        return self.tried + self.skipped

    @property
    def tried(self) -> int:
        """Those that got a row when their window was scored last."""
        return self.scored + self.failed + self.not_applicable


@dataclass(frozen=True, slots=True)
class Annotated:
    """The newest occurrences of one task, or of none.

    Attributes:
        task_id: the task; None: they have none.
        count: how many there are.
        missing: how many of them have no annotation in force, neither of their own nor of the task.
    """

    task_id: str | None
    count: int
    missing: int


@dataclass(frozen=True, slots=True)
class AnnotatedKind:
    """The newest traces, or sessions, of a source.

    Attributes:
        kind: which of the two.
        skipped: whether the source leaves out what nobody annotated.
        tasks: by task, those that lack most annotations first.
    """

    kind: PartitionType
    skipped: bool
    tasks: tuple[Annotated, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """The newest occurrences of a source, as far as they were looked at.

    Attributes:
        traces: how many traces those are.
        gone: traces that their store has no longer.
        oldest_open: id and start of the oldest trace that has not settled; None where all have, or none was looked for.
        annotated: what of them is annotated; empty where the metric needs no annotation.
        reasons: why the newest that have no score have none, by code.
        hint: what to set when one agent begins many alignments.
    """

    traces: int
    gone: int
    oldest_open: tuple[str, datetime | None] | None
    annotated: tuple[AnnotatedKind, ...]
    reasons: tuple[tuple[str, int], ...]
    hint: str | None


def check_coverage(source: str, coverage: Sequence[Coverage], sample: Sample, now: datetime) -> Iterator[Finding]:
    """Say what is covered by scores, and what to do about the rest."""
    present = [each for each in coverage if each.present]
    for each in present:
        yield from _present(source, each, sample)
    for each in coverage:
        if not each.present:
            yield Finding("ok", f"{_name(each)}, which the source was scored by before: {_share(each)}; it stays.")
    if sample.hint:
        yield Finding(
            "warning",
            sample.hint,
            "Set it in the defs.yaml if so; the scores then get another config hash, and every window is scored anew.",
        )
    for kind in sample.annotated:
        yield from _unannotated(source, kind)
    yield from _open(sum(each.unsettled for each in present), sample, now)
    if sample.gone:
        yield Finding(
            "note",
            f"{sample.gone} of {counted(sample.traces, 'newest trace')} are gone from their store, as by its "
            "retention; their spans and scores are kept here.",
            "There is nothing to do, unless they were removed by mistake.",
        )


def _present(source: str, found: Coverage, sample: Sample) -> Iterator[Finding]:
    what = f"{_name(found)}: {_share(found)}{_rest(found)}.{_apart(found)}"
    if not found.occurrences or found.scored >= _GOOD * found.occurrences:
        yield Finding("ok", what)
        return
    why = ", ".join(f"{code} ({count})" for code, count in sample.reasons[:_SHOWN])
    yield Finding(
        "warning" if found.scored < _POOR * found.occurrences else "note",
        f"{what} Of the newest, without a score: {why}." if why else what,
        f"`stepacc scores --source {source}` says why each has none; annotate what nobody annotated.",
    )


def _unannotated(source: str, found: AnnotatedKind) -> Iterator[Finding]:
    lacking = [each for each in found.tasks if each.missing]
    missing, total = sum(each.missing for each in lacking), sum(each.count for each in found.tasks)
    if not missing:
        return
    shown = [
        f"{each.missing} of {'no task' if each.task_id is None else f'task {each.task_id}'}"
        for each in lacking[:_SHOWN]
    ]
    more = len(lacking) - _SHOWN
    tasks = ", ".join(shown) + (f" and of {counted(more, 'more task')}" if more > 0 else "")
    what = f"Nobody annotated {missing} of the newest {counted(total, found.kind)}: {tasks}"
    if found.skipped:
        yield Finding("ok", f"{what}; they are left out, as `unannotated: skip` says.")
    else:
        yield Finding(
            "note",
            f"{what}.",
            f"Write what a task should do in a file and run `stepacc annotations import --source {source} FILE`; what "
            "belongs to no task is annotated by its own id.",
        )


def _open(unsettled: int, sample: Sample, now: datetime) -> Iterator[Finding]:
    if not unsettled:
        return
    oldest = ""
    if sample.oldest_open:
        trace_id, start = sample.oldest_open
        oldest = f", the oldest {trace_id}" + (f", which began {lasting(now - start)} ago" if start else "")
    yield Finding(
        "note",
        f"{counted(unsettled, 'occurrence')} had not settled when their window was scored{oldest}.",
        "They are scored once they have; `settling` in the defs.yaml says when that is.",
    )


def _name(found: Coverage) -> str:
    return f"{found.metric} {found.version} (config {found.config_hash[:8]})"


def _share(found: Coverage) -> str:
    if not found.occurrences:
        return f"nothing to score in {counted(found.windows, 'window')}"
    percent = round(100 * found.scored / found.occurrences)
    return f"{found.scored} of {counted(found.occurrences, 'occurrence')} scored ({percent} %)"


def _rest(found: Coverage) -> str:
    parts = {"failed": found.failed, "not applicable": found.not_applicable, "skipped, without a row": found.skipped}
    told = ", ".join(f"{count} {name}" for name, count in parts.items() if count)
    return f"; {told}" if told else ""


def _apart(found: Coverage) -> str:
    """Say how what `stepacc scores` shows differs from what the windows were scored with last."""
    if found.rows is None or found.rows == found.tried:
        return ""
    more = found.rows - found.tried
    erased = max(0, min(more, found.erased))
    kept = {
        "of what was erased": erased,
        "of what was scored before and not with its window again": max(0, more - erased),
    }
    why = " and ".join(f"{count} {which}" for which, count in kept.items() if count)
    told = f"with {why}" if why else "without what ceased to be since"
    return f" `stepacc scores` shows {counted(found.rows, 'row')}, {told}."
