"""Binary COPY in and out, on a SQLAlchemy connection and in its transaction.

Rows stream: neither side holds more than a network buffer of them, however many there are. While a COPY runs its
connection can do nothing else.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar, cast

import psycopg
import sqlalchemy as sa
from psycopg import sql
from psycopg.types.string import ByteaBinaryLoader

T = TypeVar("T")

ColumnType = Literal["text", "int8", "int4", "float8", "bool", "jsonb", "bytea"]
"""Types of columns here. A jsonb value is bytes on both ways, as `encode.jsonb` makes them."""

ArrayType = Literal["text[]", "int8[]", "int4[]", "float8[]", "bool[]", "jsonb[]"]
"""Types of columns that are read as lists."""

_COLLATION = ' COLLATE "C"'


def driver_connection(conn: sa.Connection) -> psycopg.Connection[Any]:
    """Return the psycopg connection under a SQLAlchemy one, inside the transaction of the latter."""
    if not conn.in_transaction():
        conn.begin()  # as executing a statement would: else a later commit() would not know of it
    return cast("psycopg.Connection[Any]", conn.connection.driver_connection)


Columns = Sequence[tuple[str, ColumnType]]
"""Names and types of columns."""


def create_staging(conn: sa.Connection, table: str, columns: Columns) -> None:
    """Create an empty temporary table that is gone when the transaction ends; one left by the same transaction goes."""
    conn.execute(sa.text(f"DROP TABLE IF EXISTS pg_temp.{table}"))
    types = ", ".join(f"{name} {kind}{_COLLATION if kind == 'text' else ''}" for name, kind in columns)
    conn.execute(sa.text(f"CREATE TEMP TABLE {table} ({types}) ON COMMIT DROP"))


def copy_in(conn: sa.Connection, table: str, columns: Columns, rows: Iterable[Sequence[Any]]) -> None:
    """COPY rows into a table.

    Args:
        conn: where to.
        table: its name, a temporary table's or one on the search path.
        columns: name and type of each column.
        rows: one value per column; text already free of what Postgres cannot store (`encode`).
    """
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        sql.Identifier(table), sql.SQL(", ").join(sql.Identifier(name) for name, _ in columns)
    )
    with driver_connection(conn).cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types([_wire_type(kind) for _, kind in columns])
        write = copy.write_row
        for row in rows:
            write(row)


def copy_out(
    conn: sa.Connection,
    query: str,
    types: Sequence[ColumnType | ArrayType],
    parameters: dict[str, Any] | None = None,
) -> Iterator[tuple[Any, ...]]:
    """COPY the rows of a query out.

    Closing the iterator before its end cancels the query, and with it the transaction, which has to be rolled back.
    Whoever may not come to the end closes it (`closed`) before the connection is used or given back.

    Args:
        conn: where from.
        query: SELECT with `{name}` for each parameter; COPY takes no bound ones, so they become literals.
        types: type of each column of the query.
        parameters: text, numbers and times by name.
    """
    literals = {name: sql.Literal(value) for name, value in (parameters or {}).items()}
    select = sql.SQL(cast("Any", query)).format(**literals)
    statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT BINARY)").format(select)
    with driver_connection(conn).cursor() as cursor:
        cursor.adapters.register_loader("jsonb", ByteaBinaryLoader)  # of the elements of arrays, as `_wire_type`
        with cursor.copy(statement) as copy:
            copy.set_types([_wire_type(kind) for kind in types])
            yield from copy.rows()


@contextmanager
def closed(iterator: Iterator[T]) -> Iterator[Iterator[T]]:
    """Use an iterator that may read a COPY, and close it at the end of the block, however that comes.

    A COPY that is left open holds its connection's lock, on which a rollback in the same thread would wait for ever.
    The garbage collector is no help: the traceback of an error keeps the iterator alive.
    """
    try:
        yield iterator
    finally:
        if isinstance(iterator, Generator):
            iterator.close()


def _wire_type(kind: ColumnType | ArrayType) -> str:
    return "bytea" if kind == "jsonb" else kind  # raw bytes: no second pass through a JSON dumper or loader
