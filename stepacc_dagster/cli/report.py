"""`stepacc report`."""

from pathlib import Path

import click

from stepacc_dagster.cli.output import counted, emit_json, json_option, note
from stepacc_dagster.cli.sources import source_option
from stepacc_dagster.evaluators import evaluator_of, evaluators_of
from stepacc_dagster.local.source import local_source
from stepacc_dagster.report.files import UI_URL_VARIABLE, write_report
from stepacc_dagster.storage.opening import open_storage

_LOCAL_UI = "http://127.0.0.1:3000"


@click.command()
@source_option
@click.option("--metric", help="Report on this metric only; on all of the source where left out.")
@click.option("--from", "first", metavar="KEY", default="", help="First window; the oldest where left out.")
@click.option("--to", "last", metavar="KEY", default="~", help="Last window, included; the newest where left out.")
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write; SOURCE-report.html in the current folder where left out.",
)
@click.option(
    "--dagster-url",
    envvar=UI_URL_VARIABLE,
    default=_LOCAL_UI,
    show_default=True,
    show_envvar=True,
    help="Address of the Dagster UI, for the links to runs.",
)
@json_option
def report(  # noqa: PLR0913, PLR0917 (its options)
    source: str | None,
    metric: str | None,
    first: str,
    last: str,
    output: Path | None,
    dagster_url: str,
    *,
    as_json: bool,
) -> None:
    """Write the scores of a source as one page of HTML, to look at offline or to send to somebody.

    It shows scores over time and their distribution, the steps that go wrong most often, tasks and failures, and the
    worst scores with the pictures of their alignments.

    \b
    stepacc report --source support_agent
    stepacc report --from 2026-11-01 --to 2026-11-30 -o november.html

    Exit codes: 0 when the file was written, 1 when it could not be, 2 for a wrong option.
    """  # noqa: D301 (click reads the backspace)
    chosen = local_source(source)
    evaluators = evaluators_of(chosen) if metric is None else (evaluator_of(chosen, metric),)
    path = output or Path(f"{chosen.name}-report.html")
    with open_storage() as engine, engine.connect() as connection:
        written = write_report(connection, chosen, evaluators, path, first=first, last=last, dagster_url=dagster_url)
    if as_json:
        emit_json(
            {"file": str(written.path), "bytes": written.size, "scored": written.scored, "unscored": written.unscored}
        )
        return
    click.echo(written.path)
    note(f"{counted(written.scored, 'score')} and {written.unscored} without one, in {written.size / 1024:,.0f} KiB.")
