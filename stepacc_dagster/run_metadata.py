"""What a partition's materialisation shows in the Dagster UI."""

from typing import Any

import dagster as dg

from stepacc_dagster.scoring import WindowScores
from stepacc_dagster.sources import Evaluator
from stepacc_dagster.storage.canonical import Ingested
from stepacc_dagster.tally import WindowTally

_SHOWN_STEPS = 8


def ingest_metadata(ingested: Ingested) -> dict[str, Any]:
    """Return the metadata of one partition of the canonical traces."""
    note = {} if ingested.traces else {"note": "No trace of this source starts in this window."}
    return {
        "dagster/partition_row_count": ingested.spans,
        "traces": ingested.traces,
        "sessions": ingested.sessions,
        "traces_unchanged": ingested.unchanged,
        "traces_removed": ingested.removed,
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
        "dagster/partition_row_count": tally.rows,
        "rows_new": scores.written.inserted,
        "rows_confirmed": scores.written.confirmed,
    }
    reasons = {"failed_by_code": tally.failed, "not_applicable_by_reason": tally.not_applicable}
    return {
        **({} if tally.occurrences else {"note": "There is nothing to score in this window."}),
        **{name: value for name, value in numbers.items() if value is not None},
        "worst": dg.MetadataValue.md(_worst_table(tally)),
        **({"without_score": dg.MetadataValue.md(_unscored_table(tally))} if tally.unscored else {}),
        **counts,
        **{name: dg.MetadataValue.json(dict(counter)) for name, counter in reasons.items() if counter},
        "metric_version": evaluator.metric.manifest.version,
        "config_hash": evaluator.config_hash,
    }


def _worst_table(tally: WindowTally) -> str:
    if not tally.worst:
        return "Nothing was scored."
    rows = [
        f"| {entry.score:.3f} | {entry.partition_type} `{entry.partition_id}` "
        f"| {_steps(entry.expected)} | {_steps(entry.actual)} |"
        for entry in tally.worst
    ]
    return "\n".join(["| score | occurrence | expected | observed |", "|---|---|---|---|", *rows])


def _unscored_table(tally: WindowTally) -> str:
    rows = [
        f"| {entry.partition_type} `{entry.partition_id}` | {entry.code} | {_cell(entry.reason)} |"
        for entry in tally.unscored
    ]
    return "\n".join(["| occurrence | code | reason |", "|---|---|---|", *rows])


def _steps(steps: tuple[Any, ...]) -> str:
    names = [step if isinstance(step, str) else "{" + ", ".join(step) + "}" for step in steps]
    more = f" … {len(names) - _SHOWN_STEPS} more" if len(names) > _SHOWN_STEPS else ""
    return _cell(" → ".join(names[:_SHOWN_STEPS]) + more) or "(none)"


def _cell(text: str) -> str:
    # A name comes from a trace: it must not break out of its cell, nor become markup.
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
