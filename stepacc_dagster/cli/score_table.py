"""Scores as tables and as JSON, and what they amount to in a line."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from rich.box import SIMPLE
from rich.table import Table

from stepacc_dagster.cli.configured import Configured
from stepacc_dagster.cli.output import cell, counted
from stepacc_dagster.storage.current import CurrentScore
from stepacc_dagster.storage.occurrences import Occurrence

_SHOWN_ID = 8
"""Characters of an id in the table."""
_SHOWN_HASH = 8
"""Characters of a config hash in the table."""


def score_table(scores: Sequence[CurrentScore], title: str) -> Table:
    """Return a table of scores, each with the annotation it was measured against or why there is none."""
    table = _table(title, "window", "occurrence", "task", "score", "measured against")
    for row in scores:
        occurrence = cell(f"{row.partition_type} {row.partition_id[:_SHOWN_ID]}")
        table.add_row(row.window_key, occurrence, cell(row.task_id or "-"), _score(row), cell(_measured_against(row)))
    return table


def occurrence_table(scores: Sequence[CurrentScore], occurrence: Occurrence, configured: Configured | None) -> Table:
    """Return a table of the scores of one trace or session by metric, version and config.

    Args:
        scores: the rows.
        occurrence: the trace or session.
        configured: its source, None where that is not known on this machine; nothing is said to be in use then.
    """
    title = f"{occurrence.source}: {occurrence.kind} {occurrence.id}"
    table = _table(title, "metric", "version", "config", "in use", "score", "measured against")
    for row in scores:
        in_use = "-" if configured is None else "yes" if configured.config_of(row) is not None else "no"
        made = (cell(row.metric), cell(row.metric_version), row.config_hash[:_SHOWN_HASH], in_use)
        table.add_row(*made, _score(row), cell(_measured_against(row)))
    return table


def score_document(row: CurrentScore) -> dict[str, Any]:
    """Return a row as the commands print it as JSON."""
    values = {each.name: getattr(row, each.name) for each in dataclasses.fields(row)}
    metadata: Mapping[str, Any] = values.pop("metadata")
    at = row.evaluated_at.astimezone(UTC).isoformat()
    erased = row.erased_at and row.erased_at.astimezone(UTC).isoformat()
    said = {"evaluated_at": at, "erased_at": erased, "measured_against": row.measured_against}
    return {**values, **said, "metadata": dict(metadata)}


def summary(scores: Sequence[CurrentScore]) -> str:
    """Say how many have a score, what the scores are on average, and why the others have none.

    Traces and sessions are told apart: a mean over both would be of nothing.
    """
    if not scores:
        return "There is nothing to score in this range: no trace of the source starts in it."
    kinds = sorted({row.partition_type for row in scores}, reverse=True)  # traces before sessions
    return " ".join(_of_kind(kind, [row for row in scores if row.partition_type == kind]) for kind in kinds)


def result(row: CurrentScore) -> str:
    """Return the score of a row, or why it has none."""
    return f"score {row.score:.3f}" if row.score is not None else _without_score(row)


def _of_kind(kind: str, scores: Sequence[CurrentScore]) -> str:
    values = [row.score for row in scores if row.score is not None]
    mean = f", {sum(values) / len(values):.3f} on average" if values else ""
    without = Counter(_without_score(row) for row in scores if row.score is None)
    reasons = "".join(f"; {count} {reason}" for reason, count in sorted(without.items()))
    erased = sum(row.erased_at is not None for row in scores)
    bare = f"; {erased} erased, of which the bare score is kept" if erased else ""
    return f"{len(values)} of {counted(len(scores), kind)} scored{mean}{reasons}{bare}."


def _table(title: str, *columns: str) -> Table:
    table = Table(title=cell(title), title_justify="left", box=SIMPLE, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=True, justify="right" if column == "score" else "left")
    return table


def _score(row: CurrentScore) -> str:
    return "-" if row.score is None else f"{row.score:.3f}"


def _measured_against(row: CurrentScore) -> str:
    erased = f"erased {row.erased_at.astimezone(UTC):%Y-%m-%d}; " if row.erased_at else ""
    return f"{erased}{_without_score(row) if row.score is None else row.measured_against}"


def _without_score(row: CurrentScore) -> str:
    return f"{row.status.replace('_', ' ')}: {row.code or row.reason}"
