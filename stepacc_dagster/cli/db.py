"""`stepacc db`."""

import click

from stepacc_dagster.cli.output import emit_json, json_option, note
from stepacc_dagster.database import check_reachable, connect_engine, open_database
from stepacc_dagster.storage.schema import upgrade as upgrade_schema


@click.group()
def db() -> None:
    """Create the tables, or bring them up to date."""


@db.command()
@json_option
def upgrade(*, as_json: bool) -> None:
    """Create the schema `stepacc` or bring it up to date; safe to run again and from several processes."""
    with open_database() as url:
        engine = connect_engine(url)
        try:
            check_reachable(engine)
            revision = upgrade_schema(engine)
        finally:
            engine.dispose()
    if as_json:
        emit_json({"schema": "stepacc", "revision": revision})
    else:
        note(f"The schema `stepacc` is at revision {revision}.")
