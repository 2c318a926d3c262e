"""Scores as a table, and what they amount to in a line."""

from collections import Counter
from collections.abc import Sequence

from rich.box import SIMPLE
from rich.table import Table

from stepacc_dagster.cli.output import cell, counted
from stepacc_dagster.storage.current import CurrentScore

_SHOWN_ID = 8
"""Characters of an id in the table."""


def score_table(scores: Sequence[CurrentScore], title: str) -> Table:
    """Return a table of scores, each with the annotation it was measured against or why there is none."""
    table = Table(title=title, title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("window", no_wrap=True)
    table.add_column("occurrence", no_wrap=True)
    table.add_column("task", no_wrap=True)
    table.add_column("score", no_wrap=True, justify="right")
    table.add_column("measured against", no_wrap=True)
    for row in scores:
        score = "-" if row.score is None else f"{row.score:.3f}"
        occurrence = cell(f"{row.partition_type} {row.partition_id[:_SHOWN_ID]}")
        table.add_row(row.window_key, occurrence, cell(row.task_id or "-"), score, _measured_against(row))
    return table


def summary(scores: Sequence[CurrentScore]) -> str:
    """Say how many occurrences have a score, what the scores are on average, and why the others have none."""
    if not scores:
        return "There is nothing to score in this range: no trace of the source starts in it."
    values = [row.score for row in scores if row.score is not None]
    mean = f", {sum(values) / len(values):.3f} on average" if values else ""
    without = Counter(_without_score(row) for row in scores if row.score is None)
    reasons = "".join(f"; {count} {reason}" for reason, count in sorted(without.items()))
    return f"{len(values)} of {counted(len(scores), 'occurrence')} scored{mean}{reasons}."


def _measured_against(row: CurrentScore) -> str:
    if row.score is None:
        return _without_score(row)
    return f"annotation {row.annotation_id}, revision {row.revision}" if row.annotation_id else "-"


def _without_score(row: CurrentScore) -> str:
    return f"{row.status.replace('_', ' ')}: {row.code or row.reason}"
