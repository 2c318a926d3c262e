"""What a partition's materialisation shows in the Dagster UI."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import dagster as dg

from stepacc_core.model import PartitionType
from stepacc_core.picture import has_alignment, picture
from stepacc_core.picture.rows import rows_of
from stepacc_dagster import markdown
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.family_tally import FamilyTally
from stepacc_dagster.report.files import WrittenReport
from stepacc_dagster.scoring import WindowScores
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.canonical import Ingested
from stepacc_dagster.storage.lineage import UsedRevisions
from stepacc_dagster.storage.summaries import Summarised
from stepacc_dagster.tally import Scored, Spread, Unscored, WindowTally
from stepacc_dagster.trace_links import TraceUrl
from stepacc_dagster.writeback.run import WrittenBack

CONTENT = frozenset(
    {
        "hint",
        "worst",
        "worst_alignments",
        "without_score",
        "failed_by_code",
        "not_applicable_by_reason",
        "unconfirmed_references",
    }
)
"""Entries of a score table's metadata that name what was found in traces, or quote it."""

_SHOWN_PICTURES = 5
_SHOWN_ENTRIES = 60
"""Alignments drawn of a partition, and entries of each, after folding."""
_SHOWN_STEPS = 8
_SHOWN_NAME = 80
_SHOWN_REASON = 400
_SHOWN_ID = 8
"""Characters of a trace's id in tables, as in those of the commands; commands take the beginning of an id."""
_DIGITS = 4


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
        **{f"redacted_{kind}": count for kind, count in ingested.redacted.items()},
        **stale,
        **note,
    }


def score_metadata(
    scores: WindowScores, source: Source, evaluator: Evaluator, revisions: UsedRevisions | None
) -> dict[str, Any]:
    """Return the metadata of one partition of the score table.

    Args:
        scores: what the scoring found and wrote.
        source: whose partition it is. Where it has both traces and sessions scored, the mean, least and greatest score
            have the kind before their names, as in `session_mean_score`.
        evaluator: the metric and config it was done by.
        revisions: the annotation revisions that scores were measured against; None where there was none.
    """
    tally, links = scores.tally, source.trace_links
    kinds = tuple(source.partition_types)
    numbers = {**_spreads(tally, kinds), "coverage": tally.coverage}
    counts = {
        "occurrences": tally.occurrences,
        "scored": tally.scored,
        "failed": tally.failed.total(),
        "not_applicable": tally.not_applicable.total(),
        "skipped_unannotated": tally.skipped,
        "unsettled": scores.unsettled.occurrences,
        "dagster/partition_row_count": tally.rows * len(evaluator.row_names),
        "rows_new": scores.written.inserted,
        "rows_confirmed": scores.written.confirmed,
        **({"rows_retired": scores.retired} if scores.retired else {}),
    }
    unscored = [*tally.failures, *tally.inapplicable]
    reasons = {"failed_by_code": tally.failed, "not_applicable_by_reason": tally.not_applicable}
    pictures = worst_alignments(tally.worst, links)
    nothing = {"note": "There is nothing to score in this window."}
    return {
        **({} if tally.occurrences or scores.unsettled.occurrences else nothing),
        **{
            name: round(value, _DIGITS) for name, value in numbers.items() if value is not None and math.isfinite(value)
        },
        **({"hint": dg.MetadataValue.text(tally.entry_agent_hint)} if tally.entry_agent_hint else {}),
        "worst": dg.MetadataValue.md(_worst_table(tally, links)),
        **({"worst_alignments": dg.MetadataValue.md(pictures)} if pictures else {}),
        **({"without_score": dg.MetadataValue.md(_unscored_table(unscored, links))} if unscored else {}),
        **_family(tally.family, kinds),
        **counts,
        **_revisions(revisions),
        **{name: dg.MetadataValue.json(dict(counter)) for name, counter in reasons.items() if counter},
        "metric_version": evaluator.metric.manifest.version,
        "config_hash": evaluator.config_hash,
    }


def _spreads(tally: WindowTally, kinds: Collection[PartitionType]) -> dict[str, float | None]:
    """Return mean, least and greatest score, by name; those of traces and of sessions apart."""
    numbers: dict[str, float | None] = {}
    for kind in kinds:
        spread = tally.spreads.get(kind, Spread())
        of = f"{kind}_" if len(kinds) > 1 else ""
        numbers |= {f"{of}mean_score": spread.mean, f"{of}min_score": spread.least, f"{of}max_score": spread.greatest}
    return numbers


def _family(family: FamilyTally, kinds: Collection[PartitionType]) -> dict[str, Any]:
    """Return what is shown of a family's members; nothing for a metric without one."""
    if not family.members:
        return {}
    rows = [
        (
            f"{name} of {kind}s" if len(kinds) > 1 else name,
            *map(str, (_rounded(each.mean), each.scored, each.failed, each.not_applicable)),
        )
        for (kind, name), each in sorted(family.members.items(), key=lambda item: item[0][0], reverse=True)
    ]
    counters = {
        "verdicts": family.verdicts,
        "unconfirmed_references": family.unconfirmed,
        "gaps_by_kind": family.gaps,
    }
    return {
        "members": dg.MetadataValue.md(markdown.table(("row", "mean", "scored", "failed", "not applicable"), rows)),
        **{name: dg.MetadataValue.json(dict(counter)) for name, counter in counters.items() if counter},
        **({"forbidden_seen": family.forbidden} if family.forbidden else {}),
    }


def _rounded(value: float | None) -> str:
    return "-" if value is None else f"{value:.{_DIGITS}f}"


def summaries_metadata(summarised: Summarised) -> dict[str, Any]:
    """Return the metadata of the task summaries: counts alone."""
    note = {} if summarised.tasks else {"note": "No scored trace or session of this source names a task."}
    return {
        "dagster/row_count": summarised.summaries,
        "tasks": summarised.tasks,
        "rows_changed": summarised.changed,
        "rows_removed": summarised.removed,
        **note,
    }


def report_metadata(written: WrittenReport) -> dict[str, Any]:
    """Return the metadata of a report that was written."""
    return {
        "file": dg.MetadataValue.path(str(written.path)),
        "bytes": written.size,
        "scored": written.scored,
        "without_score": written.unscored,
    }


def written_back_metadata(result: WrittenBack) -> dict[str, Any]:
    """Return the metadata of scores that were written back."""
    return {
        "destination": result.destination,
        "written": result.written,
        "refused": result.refused,
        **({"problems": dg.MetadataValue.json(result.problems)} if result.problems else {}),
    }


def _revisions(used: UsedRevisions | None) -> dict[str, Any]:
    if used is None:
        return {"annotation_revisions": 0}
    return {
        "annotation_revisions": used.count,
        "newest_annotation": f"stepacc lineage annotation {used.newest_id}",
        "newest_annotation_at": dg.MetadataValue.timestamp(used.newest_at),
    }


def _worst_table(tally: WindowTally, links: TraceUrl | None) -> str:
    if not tally.worst:
        return "Nothing was scored."
    rows = [
        (f"{entry.score:.3f}", _steps(entry.expected), _steps(entry.actual), _occurrence(entry, links))
        for entry in tally.worst
    ]
    return markdown.table(("score", "expected", "observed", "occurrence"), rows)


def worst_alignments(worst: Sequence[Scored], links: TraceUrl | None) -> str:
    """Return the pictures of the worst alignments, the worst first; empty where all that is drawn is as expected."""
    drawn = [(entry, picture(entry.metadata, longest=_SHOWN_ENTRIES)) for entry in worst if _imperfect(entry.metadata)]
    return "\n\n".join(
        f"**{entry.score:.3f}** {_occurrence(entry, links)}\n\n{markdown.code_block(str(alignment))}"
        for entry, alignment in drawn[:_SHOWN_PICTURES]
    )


def _imperfect(metadata: Mapping[str, Any]) -> bool:
    return has_alignment(metadata) and any(row.op != "match" or row.differences for row in rows_of(metadata))


def _unscored_table(unscored: Sequence[Unscored], links: TraceUrl | None) -> str:
    rows = [
        (
            _occurrence(entry, links),
            markdown.cell("not applicable" if entry.code == "not_applicable" else entry.code, _SHOWN_NAME),
            markdown.cell(entry.reason, _SHOWN_REASON),
        )
        for entry in unscored
    ]
    return markdown.table(("occurrence", "code", "reason"), rows)


def _steps(steps: tuple[Any, ...]) -> str:
    names = [
        "{" + ", ".join(map(str, step)) + "}" if isinstance(step, list | tuple) else str(step)
        for step in steps[:_SHOWN_STEPS]
    ]
    more = f" … {len(steps) - _SHOWN_STEPS} more" if len(steps) > _SHOWN_STEPS else ""
    return " → ".join(markdown.cell(name, _SHOWN_NAME) for name in names) + more or "(none)"


def _occurrence(entry: Scored | Unscored, links: TraceUrl | None) -> str:
    """Return what an entry is about: a trace leads to its store, and a session to that of its first trace."""
    shown = markdown.ident(entry.partition_id, _SHOWN_ID, _SHOWN_NAME)
    url = links.of(entry.trace_id) if links and entry.trace_id is not None else None
    if url is None:
        return f"{entry.partition_type} {shown}"
    if entry.partition_type == "trace":
        return f"trace {markdown.link(shown, url)}"
    return f"session {shown}, {markdown.link('first trace', url)}"
