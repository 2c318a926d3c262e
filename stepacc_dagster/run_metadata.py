"""What a partition's materialisation shows in the Dagster UI."""

import math
import re
from collections.abc import Sequence
from typing import Any

import dagster as dg

from stepacc_dagster.scoring import WindowScores
from stepacc_dagster.sources import Evaluator
from stepacc_dagster.storage.canonical import Ingested
from stepacc_dagster.tally import Scored, Unscored, WindowTally

CONTENT = frozenset({"hint", "worst", "without_score", "failed_by_code", "not_applicable_by_reason"})
"""Entries of a score table's metadata that name what was found in traces, or quote it."""

_SHOWN_STEPS = 8
_SHOWN_NAME = 80
_SHOWN_REASON = 400
_SHOWN_ID = 8
"""Characters of a trace's id in tables, as in those of the commands; commands take the beginning of an id."""
_DIGITS = 4
_PLAIN = re.compile(r"[\w.:/-]{1,80}")
_MARKUP = re.compile(r"[\\|`*~\[\]]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""What Markdown reads as more than text; an underscore within a word is none of it."""


def ingest_metadata(ingested: Ingested) -> dict[str, Any]:
    """Return the metadata of one partition of the canonical traces."""
    note = {} if ingested.traces else {"note": "No trace of this source starts in this window."}
    stale = {"windows_to_score_again": list(ingested.stale_windows)} if ingested.stale_windows else {}
    return {
        "dagster/partition_row_count": ingested.spans,
        "traces": ingested.traces,
        "sessions": ingested.sessions,
        "traces_unchanged": ingested.unchanged,
        "traces_gone_upstream": ingested.gone,
        **stale,
        **note,
    }


def score_metadata(scores: WindowScores, evaluator: Evaluator) -> dict[str, Any]:
    """Return the metadata of one partition of the score table."""
    tally = scores.tally
    numbers = {
        "mean_score": tally.mean,
        "min_score": tally.score_min,
        "max_score": tally.score_max,
        "coverage": tally.coverage,
    }
    counts = {
        "occurrences": tally.occurrences,
        "scored": tally.scored,
        "failed": tally.failed.total(),
        "not_applicable": tally.not_applicable.total(),
        "skipped_unannotated": tally.skipped,
        "unsettled": scores.unsettled.occurrences,
        "dagster/partition_row_count": tally.rows,
        "rows_new": scores.written.inserted,
        "rows_confirmed": scores.written.confirmed,
        **({"rows_retired": scores.retired} if scores.retired else {}),
    }
    unscored = [*tally.failures, *tally.inapplicable]
    reasons = {"failed_by_code": tally.failed, "not_applicable_by_reason": tally.not_applicable}
    nothing = {"note": "There is nothing to score in this window."}
    return {
        **({} if tally.occurrences or scores.unsettled.occurrences else nothing),
        **{
            name: round(value, _DIGITS) for name, value in numbers.items() if value is not None and math.isfinite(value)
        },
        **({"hint": dg.MetadataValue.md(tally.entry_agent_hint)} if tally.entry_agent_hint else {}),
        "worst": dg.MetadataValue.md(_worst_table(tally)),
        **({"without_score": dg.MetadataValue.md(_unscored_table(unscored))} if unscored else {}),
        **counts,
        **{name: dg.MetadataValue.json(dict(counter)) for name, counter in reasons.items() if counter},
        "metric_version": evaluator.metric.manifest.version,
        "config_hash": evaluator.config_hash,
    }


def _worst_table(tally: WindowTally) -> str:
    if not tally.worst:
        return "Nothing was scored."
    rows = [
        f"| {entry.score:.3f} | {_steps(entry.expected)} | {_steps(entry.actual)} | {_occurrence(entry)} |"
        for entry in tally.worst
    ]
    return "\n".join(["| score | expected | observed | occurrence |", "|---|---|---|---|", *rows])


def _unscored_table(unscored: Sequence[Unscored]) -> str:
    rows = [f"| {_occurrence(entry)} | {entry.code} | {_cell(entry.reason, _SHOWN_REASON)} |" for entry in unscored]
    return "\n".join(["| occurrence | code | reason |", "|---|---|---|", *rows])


def _steps(steps: tuple[Any, ...]) -> str:
    names = [
        "{" + ", ".join(map(str, step)) + "}" if isinstance(step, list | tuple) else str(step)
        for step in steps[:_SHOWN_STEPS]
    ]
    more = f" … {len(steps) - _SHOWN_STEPS} more" if len(steps) > _SHOWN_STEPS else ""
    return " → ".join(_cell(name, _SHOWN_NAME) for name in names) + more or "(none)"


def _occurrence(entry: Scored | Unscored) -> str:
    ident = entry.partition_id
    short = ident if len(ident) <= 2 * _SHOWN_ID else f"{ident[:_SHOWN_ID]}…"
    shown = f"`{short}`" if _PLAIN.fullmatch(ident) else _cell(ident, _SHOWN_NAME)
    return f"{entry.partition_type} {shown}"


def _cell(text: str, longest: int) -> str:
    # Names come from traces: one must not break out of its cell, become markup, or push all others out of sight.
    text = text if len(text) <= longest else f"{text[:longest]}…"
    return _MARKUP.sub(r"\\\g<0>", " ".join(text.split())).replace("&", "&amp;").replace("<", "&lt;")
