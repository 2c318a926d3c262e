"""What `stepacc erase` says."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from rich.box import SIMPLE
from rich.table import Table

from stepacc_dagster.cli.output import cell, counted
from stepacc_dagster.erasing import Found
from stepacc_dagster.event_log import EmptiedLog
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.erasure import Removed
from stepacc_dagster.stores.places import store_place

_NOUNS = {
    "traces": "trace",
    "raw_spans": "raw span",
    "spans": "canonical span",
    "score_metadata": "row of score metadata",
    "messages": "message of a failed score",
    "annotations": "annotation revision",
}
_PLURALS = {"score_metadata": "rows of score metadata", "messages": "messages of failed scores"}


def counts_table(found: Found) -> Table:
    """Return what erasing a target would remove, by source."""
    columns = ("source", "traces", "raw spans", "spans", "score metadata", "messages", "annotations")
    table = Table(*columns, title="To be removed for good", title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for source, removed in found.removed.items():
        table.add_row(cell(source), *map(str, asdict(removed).values()))
    return table


def told(found: Found, removed: Removed, logs: EmptiedLog) -> str:
    """Say what was removed."""
    target = found.target
    where = f"source `{target.source}`" if target.source else "any source"
    kept_out = f"What comes of this {target.kind} later is not stored in {where}."
    counts = [_counted(name, number) for name, number in asdict(removed).items() if number]
    if logs.materializations:
        counts.append(f"the names of steps in {counted(logs.materializations, 'event')} of Dagster")
    if logs.failed_runs:
        counts.append(f"the errors of {counted(logs.failed_runs, 'failed run')}")
    if counts:
        return f"Erased: {', '.join(counts)}. {kept_out}"
    return f"Nothing was left to erase. {kept_out}"


def store_sentences(sources: Iterable[str], configured: Mapping[str, Source]) -> list[str]:
    """Say which stores still hold spans that were erased here."""
    said = []
    for name in sources:
        settings = configured.get(name)
        if settings is None:
            said.append(
                f"Source `{name}` is not configured on this machine: if it reads a store other than stepacc's own, "
                "that still holds the spans."
            )
        elif settings.store.kind != "otel_spans":
            place = store_place(settings.store)
            url = settings.store_url_env or settings.database_url_env
            said.append(
                f"The store of source `{name}` ({place.kind}: {' and '.join(place.tables)}, in the database of {url}) "
                "is only read: it still holds the spans. Delete them there."
            )
    return said


def left_over(unsearched: Mapping[str, int], logs: EmptiedLog) -> list[str]:
    """Say what may still be there, and what to do about it."""
    said = [
        f"{counted(number, 'trace')} of source `{source}` could not be searched for the user, since their spans are in "
        "no store that is known here: erase those of this person by --trace or --session."
        for source, number in unsearched.items()
    ]
    if logs.unfinished_runs:
        said.append(
            f"{counted(len(logs.unfinished_runs), 'run')} on these windows had not ended "
            f"({', '.join(logs.unfinished_runs)}) and may still tell Dagster of steps read before: run the same "
            "command again when they have."
        )
    return said


def _counted(name: str, number: int) -> str:
    if number != 1 and name in _PLURALS:
        return f"{number} {_PLURALS[name]}"
    return counted(number, _NOUNS[name])
