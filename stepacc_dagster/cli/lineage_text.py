"""What `stepacc lineage` prints for people."""

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from stepacc_dagster.cli.configured import Configured
from stepacc_dagster.cli.families import member, shown_metric, stands_for_others, together
from stepacc_dagster.cli.lineage_json import config_of
from stepacc_dagster.cli.output import cell, counted, printable
from stepacc_dagster.measured_against import annotation_words, unannotated_words
from stepacc_dagster.storage.annotations import StoredAnnotation
from stepacc_dagster.storage.lineage import (
    AnnotationLineage,
    Revision,
    Score,
    ScoreLineage,
    SessionLineage,
    TraceLineage,
)
from stepacc_dagster.storage.occurrences import Landed, TraceRow
from stepacc_dagster.windows import moment

_SHOWN_HASH = 12
"""Characters of a config hash, as in the code version that Dagster shows."""
_SHOWN_RUN = 8
"""Characters of a run's id, as Dagster shows it in lists."""
_SECOND_NS = 1_000_000_000


def annotation_text(lineage: AnnotationLineage, revisions: Sequence[StoredAnnotation]) -> RenderableType:
    """Return an annotation revision and the scores that used it; `revisions` are all of what it says something of."""
    one = lineage.revision
    title = (
        f"Annotation {one.id}: revision {one.revision} of {len(revisions)} about {one.target_type} {one.target_id}, "
        f"for {one.partition_type}s of source {lineage.source}"
    )
    facts = {
        one.key: _value(one),
        "author": one.author or "-",
        "written": _utc(one.created_at),
        "from": one.origin or "-",
        **({"note": one.note} if one.note else {}),
        "in force": _standing(one, revisions),
    }
    return Group(_heading(title), _facts(facts), Text(_used(lineage)), *_score_tables(lineage.scores), "")


def trace_text(lineage: TraceLineage, configured: Configured | None) -> RenderableType:
    """Return a trace, its origin and its evaluations; `configured` is its source, None where that is unknown here."""
    row = lineage.row
    facts: dict[str, str | Text] = {"trace": "not ingested"} if row is None else {**_trace_facts(row)}
    facts |= {"store": _store(configured)}
    if configured and (url := configured.link(lineage.occurrence.id)):
        facts |= {"link": Text(url, style=Style(link=url), overflow="fold")}
    if lineage.landed:
        facts |= {"landed": _landed(lineage.landed)}
    facts |= _pictures(lineage)
    mark = ", erased" if row and row.erased_at else ""
    title = f"Trace {lineage.occurrence.id} of source {lineage.occurrence.source}{mark}"
    return Group(_heading(title), _facts(facts), *_evaluations(lineage.evaluations, configured), "")


def session_text(lineage: SessionLineage, configured: Configured | None) -> RenderableType:
    """Return a session, its traces and its evaluations; `configured` is its source, None where that is unknown here."""
    row = lineage.row
    facts = {"session": "no trace names it any more"}
    if row is not None:
        facts = {
            "window": f"{row.window_key}, {_times(row.start_time_unix_nano, row.end_time_unix_nano)}",
            "task": row.task_id or "-",
            "changed": f"{_utc(row.changed_at)}{_erased(row.erased_at)}",
        }
    facts |= {"store": _store(configured), **_pictures(lineage)}
    traces = Table("trace", "window", "spans", "status", box=SIMPLE, padding=(0, 1, 0, 0))
    for trace in lineage.traces:
        traces.add_row(cell(trace.trace_id), trace.window_key, str(trace.span_count), trace.status)
    mark = ", erased" if row and row.erased_at else ""
    title = f"Session {lineage.occurrence.id} of source {lineage.occurrence.source}{mark}"
    listed = [traces] if lineage.traces else []
    return Group(_heading(title), _facts(facts), *listed, *_evaluations(lineage.evaluations, configured), "")


def _pictures(lineage: TraceLineage | SessionLineage) -> dict[str, str]:
    """Return the command that draws the alignments, where there is any to draw."""
    if not any(each.score.score is not None and each.score.state == "current" for each in lineage.evaluations):
        return {}
    one = lineage.occurrence
    return {"pictures": shlex.join(["stepacc", "scores", f"--{one.kind}", one.id, "--picture"])}


def _standing(one: Revision, revisions: Sequence[StoredAnnotation]) -> str:
    later = [each for each in revisions if each.revision > one.revision]
    if one.erased_at:
        return f"no, erased {_utc(one.erased_at)}"
    if later:
        verb = "withdrawn" if later[0].withdrawn else "changed"
        return (
            f"no, {verb} by revision {later[0].revision} (annotation {later[0].id}"
            f"{f' of {later[0].author}' if later[0].author else ''}, {_utc(later[0].created_at)})"
        )
    return "no, it is a withdrawal: nothing is expected" if one.withdrawn else "yes"


def _used(lineage: AnnotationLineage) -> str:
    shown = list(filter(stands_for_others, lineage.scores)) or lineage.scores
    if not shown:
        return "No score used it."
    states = Counter(score.state for score in shown)
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    text = f"{counted(len(shown), 'score')} used it: {told}."
    if states["current"] and not lineage.revision.in_force:
        text += " The current ones are measured against what is no longer in force; score their windows again."
    return text


def _score_tables(scores: Iterable[Score]) -> Iterator[RenderableType]:
    for maker, group in groupby(sorted(filter(stands_for_others, scores), key=_maker), key=_maker):
        rows = list(group)
        yield _heading(maker)
        yield _config(config_of(rows[0], None))
        table = Table("window", "occurrence", "result", "state", "run", box=SIMPLE, padding=(0, 1, 0, 0))
        for score in rows:
            occurrence = cell(f"{score.partition_type} {score.partition_id}")
            run = (score.dagster_run_id or "-")[:_SHOWN_RUN]
            table.add_row(score.window_key, occurrence, _result(score), score.state, run)
        yield table


def _evaluations(evaluations: Sequence[ScoreLineage], configured: Configured | None) -> Iterator[RenderableType]:
    if not evaluations:
        yield Text("It was never scored.")
    ordered = sorted(together(evaluations), key=lambda shown: _maker(shown[0].score))
    for maker, group in groupby(ordered, key=lambda shown: _maker(shown[0].score)):
        rows = list(group)
        present = "" if configured is None else ", which the source has now"
        if configured and configured.config_of(rows[0][0].score) is None:
            present = ", not what the source has now"
        yield _heading(f"{maker}{present}")
        yield _config(config_of(rows[0][0].score, configured))
        yield from (_evaluation(each, others) for each, others in rows)


def _evaluation(each: ScoreLineage, others: Sequence[Score]) -> Padding:
    score = each.score
    retired = f" since {_utc(score.retired_at)}" if score.state == "retired" and score.retired_at else ""
    since = "" if score.confirmed_at == score.evaluated_at else f", confirmed {_utc(score.confirmed_at)}"
    shown = "" if score.metric == shown_metric(score) else f"{member(score)} "
    told = "\n".join(f"{member(other)} {_result(other)}" for other in others)
    return _facts(
        {
            f"score {score.score_id}": f"{shown}{_result(score)}, {score.state}{retired}",
            **({"beside it": told} if told else {}),
            **({"because": score.message} if score.message else {}),
            "against": "\n".join(_expectation(each)),
            "run": score.dagster_run_id or "-",
            "evaluated": f"{_utc(score.evaluated_at)}{since}",
        }
    )


def _expectation(each: ScoreLineage) -> list[str]:
    one = each.revision
    if one is None:
        return [unannotated_words(each.score.expected_from)]
    standing = "" if one.in_force else ", no longer in force"
    return [
        f"{annotation_words(one.id, one.revision, one.target_type, one.target_id)}{standing}",
        _value(one),
        f"by {one.author or '-'}, from {one.origin or '-'}, {_utc(one.created_at)}",
    ]


def _trace_facts(row: TraceRow) -> dict[str, str]:
    if row.erased_at:
        return {
            "content": f"erased {_utc(row.erased_at)}, for good; ids, window and bare scores are kept",
            "window": row.window_key,
            "session": row.session_id or "-",
            "task": row.task_id or "-",
        }
    gone = f"; gone from its store since {_utc(row.gone_upstream_at)}" if row.gone_upstream_at else ""
    changed = "" if row.changed_at == row.first_ingested_at else f", changed {_utc(row.changed_at)}"
    gaps = [f"{gap['kind']}: {gap['detail']}" for gap in row.gaps]
    return {
        "window": f"{row.window_key}, {_times(row.start_time_unix_nano, row.end_time_unix_nano)}",
        "session": row.session_id or "-",
        "task": row.task_id or "-",
        "root": f"span {row.root_span_id}, status {row.status}" if row.root_span_id else "none",
        "spans": f"{row.span_count}, {'all ended' if row.settled else 'without a root, or some have no end'}",
        "gaps": "\n".join(gaps) or "none",
        "ingested": f"{_utc(row.first_ingested_at)}{changed}{gone}",
    }


def _store(configured: Configured | None) -> str:
    if configured is None:
        return "not known here: the source has no defs.yaml on this machine"
    place = configured.place
    if place.kind == "otel_spans":
        return place.trace_column
    projects = f", {', '.join(place.projects)} of it" if place.projects else ""
    tables = " and ".join(place.tables)
    return f"{place.kind}{projects}: {tables}, ids in {place.trace_column}, in the database of {configured.url_env}"


def _landed(landed: Landed) -> str:
    scopes = f" of {', '.join(landed.scopes)}" if landed.scopes else ""
    return f"{counted(landed.spans, 'raw span')}{scopes}, {_from_to(landed.first_seen_at, landed.ingested_at)}"


def _erased(at: datetime | None) -> str:
    return f"; erased {_utc(at)}" if at else ""


def _from_to(first: datetime, last: datetime) -> str:
    return _utc(first) if first == last else f"{_utc(first)}, the last {_utc(last)}"


def _maker(score: Score) -> str:
    return f"{shown_metric(score)} {score.metric_version}, config {score.config_hash[:_SHOWN_HASH]}"


def _result(score: Score) -> str:
    if score.score is not None:
        return f"{score.score:.3f}"
    return f"{score.status.replace('_', ' ')}: {score.code or score.reason}"


def _heading(title: str) -> Text:
    return Text(printable(title), style="bold")


def _config(config: Mapping[str, Any] | None) -> Padding:
    """Return what a config hash stands for, as a line below the heading that names it."""
    unknown = "known by its hash alone: it was scored before configs were kept"
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_row("config", cell(unknown if config is None else json.dumps(config, ensure_ascii=False)))
    return Padding(grid, (0, 0, 0, 2))


def _facts(facts: Mapping[str, str | Text]) -> Padding:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, value in facts.items():
        grid.add_row(cell(name), value if isinstance(value, Text) else _lines(value.split("\n")))
    return Padding(grid, (0, 0, 1, 2))


def _lines(texts: Iterable[str]) -> Text:
    """Return lines from outside as one cell."""
    return Text("\n", overflow="fold").join(cell(text) for text in texts)


def _value(one: Revision) -> str:
    if one.erased_at:
        return "(erased)"
    return "(withdrawn)" if one.withdrawn else json.dumps(one.value, ensure_ascii=False)


def _utc(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _times(start_ns: int | None, end_ns: int | None) -> str:
    if start_ns is None:
        return "without times"
    lasted = "" if end_ns is None else f", {(end_ns - start_ns) / _SECOND_NS:.1f} s"
    return f"{_utc(moment(start_ns))}{lasted}"
