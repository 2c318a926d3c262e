"""`stepacc db`."""

import sys

import click
import psycopg
from rich.table import Table

from stepacc_dagster.cli.output import cell, emit_json, json_option, note, out
from stepacc_dagster.database import check_reachable, connect_engine, open_database
from stepacc_dagster.storage.copy import driver_connection
from stepacc_dagster.storage.opening import open_storage
from stepacc_dagster.storage.schema import upgrade as upgrade_schema


@click.group()
def db() -> None:
    """Create the tables or bring them up to date, and read them by SQL."""


@db.command(short_help="Create the schema `stepacc`, or bring it up to date.")
@json_option
def upgrade(*, as_json: bool) -> None:
    """Create the schema `stepacc` or bring it up to date; safe to run again and from several processes.

    \b
    stepacc db upgrade
    """  # noqa: D301 (click reads the backspace)
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


@db.command(short_help="Print the rows of an SQL statement.")
@click.argument("statement", required=False)
@json_option
def query(statement: str | None, *, as_json: bool) -> None:
    """Print the rows of an SQL STATEMENT, else of the one on standard input; nothing can be changed by it.

    \b
    stepacc db query "SELECT metric, count(*) FROM stepacc.scores GROUP BY 1"
    stepacc db query --json < query.sql
    """  # noqa: D301 (click reads the backspace)
    text = statement or sys.stdin.read()
    with open_storage() as engine, engine.connect() as connection:
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        # In a pipeline, since that takes one statement only: a COMMIT before another would end the reading.
        driver = driver_connection(connection)
        try:
            with driver.pipeline():
                cursor = driver.execute(text.encode())
        except psycopg.Error as error:
            msg = f"The database says: {str(error).partition(chr(10))[0]}."
            raise click.ClickException(msg) from None
        if cursor.description is None:
            note("The statement gives no rows.")
            return
        columns, rows = [column.name for column in cursor.description], cursor.fetchall()
    if as_json:
        for row in rows:
            emit_json(dict(zip(columns, row, strict=True)))
        return
    table = Table()
    for column in columns:
        table.add_column(cell(column))
    for row in rows:
        table.add_row(*(cell("" if value is None else str(value)) for value in row))
    out().print(table)
