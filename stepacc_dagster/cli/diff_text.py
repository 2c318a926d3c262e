"""What `stepacc diff` prints for people."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stepacc_core.comparison.causes import CAUSES
from stepacc_core.comparison.diff import Changed, Diff, OneSided
from stepacc_core.comparison.intervals import Change
from stepacc_core.comparison.observations import SHOWN_HASH, Counts, Selection
from stepacc_core.picture import has_alignment, picture
from stepacc_dagster.cli.output import cell, counted, printable

_FLIPS = {"broke": ", no longer passes", "mended": ", passes now", None: ""}


def diff_text(found: Diff, metadata: Mapping[int, Mapping[str, Any]], limit: int) -> Group:
    """Return the comparison as tables and sentences, with the pictures of the pairs that changed most."""
    metric = found.before.metric or found.after.metric
    title = f"{metric}, {found.before.partition_type}s, paired by {found.pairing.by}"
    return Group(cell(title), _sides(found), *map(Text, _sentences(found)), *_pairs(found, metadata, limit))


def _sides(found: Diff) -> Table:
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for column in ("", "before", "after"):
        table.add_column(column, no_wrap=bool(not column))
    sides = [*zip(_side(found.before, found.before_counts), _side(found.after, found.after_counts), strict=True)]
    for (name, before), (_, after) in sides:
        table.add_row(name, cell(before), cell(after))
    return table


def _side(selection: Selection, counts: Counts) -> Iterator[tuple[str, str]]:
    yield "source", selection.source
    yield "windows", selection.windows
    yield "version", selection.metric_version
    yield "config", selection.config_hash[:SHOWN_HASH]
    yield "scored", str(counts.scored)
    yield "failed", str(counts.failed)
    yield "not applicable", str(counts.not_applicable)
    yield "mean", "-" if counts.mean is None else f"{counts.mean:.3f}"


def _sentences(found: Diff) -> Iterator[str]:
    if len(found.differs) > 1:
        yield f"The sides differ in {' and '.join(found.differs)}, so a change cannot be put down to one of these."
    noun = found.before.partition_type if found.pairing.by == "occurrence" else "task"
    pairs = counted(len(found.pairing.pairs), noun)
    if found.change is None:
        yield "Nothing pairs: no change can be told."
    else:
        rose, fell = found.rose(), found.fell()
        yield f"Mean change over {pairs}: {_told(found.change)}."
        yield (
            f"{rose} rose, {fell} fell, {len(found.pairing.pairs) - rose - fell} stayed; "
            f"newly passing: {found.flipped('mended')}, no longer passing: {found.flipped('broke')}."
        )
    if found.other_change:
        yield (
            f"Apart from these, {counted(len(found.pairing.other_reference), noun)} measured against another "
            f"expectation on either side: {_told(found.other_change)}."
        )
    if revisions := found.pairing.other_revisions:
        yield f"{counted(revisions, noun)} by another annotation revision that says the same."
    for side, alone in (("before", found.before_only), ("after", found.after_only)):
        if alone:
            yield f"Without a counterpart, scored {side} only: {_alone(alone, found)}."


def _told(change: Change) -> str:
    drawn = {"pairs": "", "runs": ", of runs within their task"}[change.unit]
    return f"{change.mean:+.3f} (95 % interval {change.low:+.3f} to {change.high:+.3f}, {change.method}{drawn})"


def _alone(alone: Sequence[OneSided], found: Diff) -> str:
    if found.pairing.by == "task":
        without = sum(each.scored.task_id is None for each in alone)
        told = f" ({without} without a task)" if without else ""
        return f"{counted(len(alone), 'run')}{told}"
    kinds = Counter((each.other_status or "absent").replace("_", " ") for each in alone)
    return f"{len(alone)} ({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))} on the other side)"


def _pairs(found: Diff, metadata: Mapping[int, Mapping[str, Any]], limit: int) -> Iterator[RenderableType]:
    shown = found.changed[:limit]
    for each in shown:
        yield Text()
        yield cell(_heading(each, found))
        pictures = [_picture(metadata.get(side.score_id or 0)) for side in (each.before, each.after)]
        if any(pictures):
            grid = Table.grid(padding=(0, 2), expand=True)
            grid.add_column(ratio=1)
            grid.add_column(ratio=1)
            grid.add_row(*(drawn or Text("no picture") for drawn in pictures))
            yield grid
    if len(found.changed) > len(shown):
        yield Text()
        yield Text(f"And {len(found.changed) - len(shown)} more that changed; --limit shows more, --json all.")


def _heading(each: Changed, found: Diff) -> str:
    pair, (before, after) = each.pair, each.pair.means
    if found.pairing.by == "task":
        runs = f" ({counted(len(pair.before), 'run')} and {counted(len(pair.after), 'run')})"
        name = f"task {pair.name}{runs}"
    else:
        task = f", task {pair.task_id}" if pair.task_id else ""
        name = f"{found.before.partition_type} {pair.name}{task}"
    why = "; ".join(CAUSES[cause] for cause in each.causes)
    return printable(f"{name}: {before:.3f} before, {after:.3f} after{_FLIPS[each.flip]}. {why[0].upper()}{why[1:]}.")


def _picture(metadata: Mapping[str, Any] | None) -> RenderableType | None:
    return picture(metadata) if metadata and has_alignment(metadata) else None
