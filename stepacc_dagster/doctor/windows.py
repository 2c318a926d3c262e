"""Checks of a source's windows: what failed, what was never ingested, what is out of date."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from stepacc_dagster.cli.output import counted
from stepacc_dagster.doctor.findings import Finding
from stepacc_dagster.windows import spanned

Due = Literal["ingest", "ingest again", "score", "score by the new version"]

_SHOWN = 3
"""Different problems that are told."""

_DUE: dict[Due, str] = {
    "ingest": "{} with new traces never ingested",
    "ingest again": "{} with new or changed spans, or read by an older reading, since the last ingest",
    "score": "{} not scored since annotations, sessions or traces changed",
    "score by the new version": "{} scored by other versions or configs of the metric only",
}


@dataclass(frozen=True, slots=True)
class WindowFact:
    """Where a window with anything in it stands.

    Attributes:
        key: the window.
        due: what has to be done; None: nothing.
        asked: whether a run was asked for that does so, and may still come.
        problem: why the last attempt failed; None where it did not. With nothing due it is not tried again.
    """

    key: str
    due: Due | None = None
    asked: bool = False
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a source.

    Attributes:
        source: its name.
        first: its first partition.
        last: its last one.
        known: those of its partitions that ever had anything in them, in order.
        outside: keys of windows that have traces and are no partitions, in order.
        followed: whether a sensor brings them up to date.
        rescored: whether it does so after a change of the metric's version or config too.
        has_spans: whether spans have landed in stepacc's own table; None where the source reads another store.
    """

    source: str
    first: str
    last: str
    known: tuple[WindowFact, ...]
    outside: tuple[str, ...]
    followed: bool
    rescored: bool
    has_spans: bool | None


def check_windows(found: Windows) -> Iterator[Finding]:
    """Say which windows failed, and which are not up to date."""
    if not found.known:
        yield from _nothing(found)
    yield from _failed(found)
    yield from _due(found)
    if found.known and not any(window.due or window.problem for window in found.known):
        keys = [window.key for window in found.known]
        yield Finding("ok", f"{counted(len(keys), 'window')} with traces up to date, {spanned(keys)}.")
    early = [key for key in found.outside if key < found.first]
    late = [key for key in found.outside if key > found.last]
    if early:
        yield Finding(
            "note",
            f"{counted(len(early), 'window')} with traces before the source's first partition {found.first} "
            f"({spanned(early)}): nothing of them is scored.",
            "Set start_date in the defs.yaml to an earlier day, if they are to be.",
        )
    if late:
        yield Finding(
            "note",
            f"{counted(len(late), 'window')} with traces after the source's last partition {found.last} "
            f"({spanned(late)}).",
            "Look at the clock of whoever wrote them; with end_offset 0 the window that still runs is none yet.",
        )


def _nothing(found: Windows) -> Iterator[Finding]:
    if found.has_spans is False:
        yield Finding(
            "note",
            f"No trace of source {found.source} has landed.",
            f"Run `stepacc import traces --source {found.source} FILES`, or `stepacc collect --source {found.source}`.",
        )
    elif not found.outside:
        yield Finding(
            "note" if found.followed else "warning",
            "Nothing of this source has been ingested yet.",
            f"Run `stepacc materialize --source {found.source}`, or let the sensor of a running daemon do so.",
        )


def _failed(found: Windows) -> Iterator[Finding]:
    by_problem: dict[str, list[WindowFact]] = {}
    for window in found.known:
        if window.problem:
            by_problem.setdefault(window.problem, []).append(window)
    shown = sorted(by_problem.items(), key=lambda each: (-len(each[1]), each[1][0].key))
    for problem, windows in shown[:_SHOWN]:
        final = any(window.due is None for window in windows)
        again = f"run `stepacc backfill --source {found.source} --only failed`"
        yield Finding(
            "error" if final else "warning",
            f"{_windows(windows)} failed: {problem}",
            f"Mend what it names, then {again}; it is not tried again before something changes."
            if final
            else f"It is tried again where changes are followed; else {again}.",
        )
    if rest := [window for _, windows in shown[_SHOWN:] for window in windows]:
        yield Finding(
            "error" if any(window.due is None for window in rest) else "warning",
            f"{counted(len(rest), 'more window')} failed with {counted(len(shown) - _SHOWN, 'other problem')}.",
            f"`stepacc backfill --source {found.source} --only failed --dry-run` lists them.",
        )


def _due(found: Windows) -> Iterator[Finding]:
    for due, words in _DUE.items():
        windows = [window for window in found.known if window.due == due and not window.problem]
        if not windows:
            continue
        what = words.format(_windows(windows))
        backfill = f"Run `stepacc backfill --source {found.source}`"
        if found.followed and all(window.asked for window in windows):
            remedy = "Wait for them, or see in the UI what they wait for."
            yield Finding("note", f"{what}; the runs that bring them up to date were asked for.", remedy)
        elif due == "score by the new version" and not found.rescored:
            yield Finding("note", f"{what}, as `follow.rescore` is false.", f"{backfill}.")
        else:
            yield Finding("warning", f"{what}.", f"{backfill}, or let the sensor of a running daemon do so.")


def _windows(windows: Sequence[WindowFact]) -> str:
    return f"{counted(len(windows), 'window')} ({spanned([window.key for window in windows])})"
