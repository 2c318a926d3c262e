"""`stepacc manifest`."""

import click
import yaml
from rich.table import Table

from stepacc_core import get_metric, registered_metrics
from stepacc_core.metrics import metric_problems
from stepacc_dagster.cli.metrics import refused_as_usage
from stepacc_dagster.cli.output import emit_json, json_option, note, out


@click.command()
@click.argument("name", required=False)
@click.option("--metric-version", help="A version; the newest where left out.")
@json_option
def manifest(name: str | None, metric_version: str | None, *, as_json: bool) -> None:
    """Show the manifest of metric NAME, or list all metrics.

    \b
    stepacc manifest
    stepacc manifest agent.step_accuracy --json
    """  # noqa: D301 (click reads the backspace)
    if name:
        with refused_as_usage():
            document = get_metric(name, metric_version).manifest.model_dump(mode="json")
        if as_json:
            emit_json(document)
        else:
            click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110), nl=False)
        return
    if metric_version:
        msg = "--metric-version goes with a NAME; without both, all metrics are listed."
        raise click.UsageError(msg)
    manifests = [metric.manifest for metric in registered_metrics()]
    for problem in metric_problems():
        note(str(problem))
    if as_json:
        emit_json([entry.model_dump(mode="json") for entry in manifests])
        return
    table = Table("metric", "version", "partitions", "description")
    for entry in manifests:
        table.add_row(entry.name, entry.version, ", ".join(entry.partition_types), entry.description)
    out().print(table)
