"""`stepacc scores`."""

from collections.abc import Iterator

import click

from stepacc_core.model import PartitionType
from stepacc_dagster.cli.configured import configured_sources
from stepacc_dagster.cli.families import shown_metric, stands_for_others
from stepacc_dagster.cli.occurrences import named_occurrences
from stepacc_dagster.cli.output import emit_json, json_option, note, print_table
from stepacc_dagster.cli.score_pictures import show_score_pictures
from stepacc_dagster.cli.score_table import occurrence_table, score_document, score_table, summary
from stepacc_dagster.cli.sources import source_option
from stepacc_dagster.evaluators import Evaluator, evaluator_of, evaluators_of
from stepacc_dagster.local.source import local_source
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.current import CurrentScore, ScoreSelection, current_scores, scores_of, worst_scores
from stepacc_dagster.storage.opening import open_storage

_FIRST, _LAST = "", "~"
"""Text before and after every window's key."""


@click.command()
@source_option
@click.option(
    "--metric",
    help="Name of a metric of the source, or of a member of its family; where left out, all metrics, and of a family "
    "the member that stands for it.",
)
@click.option("--type", "kind", type=click.Choice(["trace", "session"]), help="Only traces, or only sessions.")
@click.option("--from", "first", metavar="KEY", help="First window; the oldest where left out.")
@click.option("--to", "last", metavar="KEY", help="Last window, included; the newest where left out.")
@click.option("--worst", type=click.IntRange(1), metavar="N", help="Only the N worst scores of each metric.")
@click.option(
    "--trace",
    metavar="ID",
    help="Of this trace alone, by every version and config, in any source; the beginning of its id will do.",
)
@click.option("--session", metavar="ID", help="Of this session alone, in the same way.")
@click.option("--picture", "drawn", is_flag=True, help="Draw the alignment of each score that is shown.")
@json_option
def scores(  # noqa: PLR0913, PLR0917 (its options)
    source: str | None,
    metric: str | None,
    kind: PartitionType | None,
    first: str | None,
    last: str | None,
    worst: int | None,
    trace: str | None,
    session: str | None,
    *,
    drawn: bool,
    as_json: bool,
) -> None:
    """Show the current scores of a source, by the metric versions and configs it has now, or those of one trace.

    \b
    stepacc scores --source support_agent
    stepacc scores --worst 3 --picture                    the lowest scores, drawn
    stepacc scores --trace 4bf92f35 --picture             one trace, by each version of each metric
    stepacc scores --metric agent.trajectory_match        every member of the family
    stepacc scores --metric trajectory_match.f1 --json

    With --json each row is one document, and every member of a family is there:

    \b
    source, metric, metric_version, config_hash           what the score is by
    window_key, partition_type, partition_id, session_id, task_id
    status, code, reason, message, score                  score: null unless the status is scored
    expected_from, measured_against                       as stored (annotations, column, config), and in words
    annotation_id, revision, author, target_type, target_id
    dagster_run_id, evaluated_at, erased_at               erased_at: null unless its trace or session was erased
    metadata                                              with the alignment under steps
    """  # noqa: D301 (click reads the backspace)
    one = _one(trace, session)
    if one is None:
        _show_selection(source, metric, kind, first or _FIRST, last or _LAST, worst, drawn=drawn, as_json=as_json)
    elif given := [name for name, value in _excluded(kind, first, last, worst).items() if value is not None]:
        msg = f"--{one[0]} shows all scores of one {one[0]}; leave {' and '.join(given)} out."
        raise click.UsageError(msg)
    else:
        _show_occurrence(*one, source, metric, drawn=drawn, as_json=as_json)


def _one(trace: str | None, session: str | None) -> tuple[PartitionType, str] | None:
    if trace is not None and session is not None:
        msg = "Give --trace or --session, not both."
        raise click.UsageError(msg)
    if trace is not None:
        return "trace", trace
    return None if session is None else ("session", session)


def _excluded(
    kind: PartitionType | None, first: str | None, last: str | None, worst: int | None
) -> dict[str, object | None]:
    return {"--type": kind, "--from": first, "--to": last, "--worst": worst}


def _show_selection(  # noqa: PLR0913, PLR0917 (the command's options)
    source: str | None,
    metric: str | None,
    kind: PartitionType | None,
    first: str,
    last: str,
    worst: int | None,
    *,
    drawn: bool,
    as_json: bool,
) -> None:
    chosen = local_source(source)
    selections = list(_selections(chosen, metric, kind, first, last, members=as_json))
    with open_storage() as engine, engine.connect() as connection:
        for evaluator, selection in selections:
            named = f"{chosen.name}: {selection.metric} {selection.version}"
            if worst is None:
                rows = current_scores(connection, selection)
                said = summary(rows)
            else:
                lower = evaluator.metric.manifest.direction == "lower_is_better"
                rows, of = worst_scores(connection, selection, worst, lower_is_better=lower)
                named = f"{named}, the worst first"
                said = f"{len(rows)} of {of} with a score."
            if as_json:
                _emit(rows)
                continue
            print_table(score_table(rows, named))
            note(said if len(selections) == 1 else f"{selection.metric}: {said}")
            if drawn:
                show_score_pictures(rows)


def _show_occurrence(  # noqa: PLR0913 (as above)
    kind: PartitionType, ident: str, source: str | None, metric: str | None, *, drawn: bool, as_json: bool
) -> None:
    with open_storage() as engine, engine.connect() as connection:
        occurrences = named_occurrences(engine, connection, kind, ident, source)
        found = [(occurrence, scores_of(connection, occurrence)) for occurrence in occurrences]
    configured = {} if as_json else configured_sources()
    for occurrence, every in found:
        rows = [row for row in every if _is_shown(row, metric, members=as_json)]
        if as_json:
            _emit(rows)
        elif not rows:
            by = f" by {metric}" if metric else ""
            note(f"{occurrence.source}: {occurrence.kind} {occurrence.id} has no score{by}.")
        else:
            print_table(occurrence_table(rows, occurrence, configured.get(occurrence.source)))
            if drawn:
                show_score_pictures(rows)


def _is_shown(row: CurrentScore, metric: str | None, *, members: bool) -> bool:
    if metric is None:
        return members or stands_for_others(row)
    return metric in (row.metric, shown_metric(row))


def _emit(rows: list[CurrentScore]) -> None:
    for row in rows:
        emit_json(score_document(row))


def _selections(  # noqa: PLR0913 (what is selected)
    source: Source, metric: str | None, kind: PartitionType | None, first: str, last: str, *, members: bool
) -> Iterator[tuple[Evaluator, ScoreSelection]]:
    evaluators = evaluators_of(source) if metric is None else (evaluator_of(source, metric),)
    for evaluator in evaluators:
        for name in _names(evaluator, metric, members=members):
            version = evaluator.metric.manifest.version
            selection = ScoreSelection(source.name, name, version, evaluator.config_hash, first, last, kind)
            yield evaluator, selection


def _names(evaluator: Evaluator, metric: str | None, *, members: bool) -> tuple[str, ...]:
    """Return the names of the rows that are shown of a metric."""
    if metric is None:
        return evaluator.row_names if members else (evaluator.headline,)
    return evaluator.row_names if metric == evaluator.name else (metric,)
