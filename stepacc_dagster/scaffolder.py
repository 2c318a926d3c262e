"""What `dg scaffold defs` writes for a new source: a `defs.yaml` that loads at once and says what may be set."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import dagster as dg

from stepacc_core.errors import ConfigError
from stepacc_dagster.sources import Source

_YAML = """\
# `dg utils inspect-component {type}` lists every setting with an example.
type: {type}

attributes:
  # The agent. Its asset keys begin with this name, and the commands take it as `--source`.
  source: {source}

  # The first day that is evaluated, UTC; traces that started before are left alone.
  start_date: "{start_date}"

  # What is scored: every trace, every session (the traces with one session id), or both.
  partition_types: [trace]

  # What a trace or session nobody annotated gets: a failed row (fail) or none (skip).
  unannotated: fail

  # The variable that holds the URL of the database in which stepacc keeps its tables.
  database_url_env: STEPACC_DATABASE_URL

  # The settings below are off; remove the `#` before those you want.

  # Where the traces are, if neither `stepacc import traces` nor `stepacc collect` brings them into that database:
  # phoenix, mlflow, langfuse_v2 or a table of your own. The variable holds the URL, if the store has its own database.
  # store: {{kind: phoenix, projects: [{source}]}}
  # store_url_env: PHOENIX_DATABASE_URL

  # Where a trace is found in the store's own UI, for links from Dagster and the commands.
  # trace_url: https://phoenix.example.org/projects/1/traces/{{trace_id}}

  # What of a trace is no step: the agent that takes the request, and steps of these names.
  # step_policy: {{entry_agent: root, ignore: [transfer_to_agent]}}

  # Which metric, which version of it (the newest where left out) and its config. `stepacc manifest` lists the metrics.
  # metric: agent.step_accuracy
  # metric_version: 2.0.0
  # config: {{scoring_method: strict_position}}

  # Whether a new version or config of the metric is applied to windows that were scored before, without being asked.
  # follow: {{rescore: false}}

  # How the assets fit into your catalog.
  # assets: {{key_prefix: [evals], group_name: agent_quality, owners: ["team:evals"], tags: {{tier: gold}}}}
"""
_PYTHON = """\
import dagster as dg
from {module} import {name}


@dg.component_instance
def load(context: dg.ComponentLoadContext) -> {name}:
    return {name}(source="{source}", start_date="{start_date}")
"""


class StepAccuracyScaffolder(dg.Scaffolder[Any]):
    """Writes the definition of a source whose name is that of the new folder."""

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        """Write `defs.yaml`, or `component.py` where Python was asked for; evaluation begins today.

        Raises:
            click.ClickException: the folder's name cannot be a source's, or the source is to be added to a file.
        """
        folder = request.target_path
        if request.append:
            msg = f"{folder} has a component already; give each source a folder of its own."
            raise click.ClickException(msg)
        try:
            source = Source(name=folder.name, start_date=datetime.now(UTC).date().isoformat())
        except ConfigError as error:
            _remove_if_empty(folder)
            raise click.ClickException(error.message) from None
        values = {"source": source.name, "start_date": source.start_date}
        if request.scaffold_format == "python":
            module, _, name = request.type_name.rpartition(".")
            (folder / "component.py").write_text(_PYTHON.format(module=module, name=name, **values), encoding="utf-8")
        else:
            (folder / "defs.yaml").write_text(_YAML.format(type=request.type_name, **values), encoding="utf-8")


def _remove_if_empty(folder: Path) -> None:
    # Dagster made the folder before it asked, and would take it for one that is there the next time.
    if not any(folder.iterdir()):
        folder.rmdir()
