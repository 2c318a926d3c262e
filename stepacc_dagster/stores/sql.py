"""Reading other people's tables: read-only connections, quoted names, streams of rows, and columns that must exist."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from stepacc_core.errors import ConfigError
from stepacc_dagster.stores.errors import StoreSchemaError
from stepacc_dagster.windows import WindowKind, window_containing, window_length_ns

_FETCHED = 100
"""Rows fetched at a time: a row of a trace store may well have a megabyte."""

_COLUMNS = sa.text("""
    SELECT relation.relname, attribute.attname, format_type(attribute.atttypid, NULL)
    FROM pg_class relation
    JOIN pg_namespace space ON space.oid = relation.relnamespace
    JOIN pg_attribute attribute ON attribute.attrelid = relation.oid
    WHERE space.nspname = :schema AND relation.relname = ANY(:tables) AND relation.relkind = ANY('{r,p,v,m,f}')
      AND attribute.attnum > 0 AND NOT attribute.attisdropped
""")


@contextmanager
def read_only(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Give a connection in a transaction in which Postgres itself refuses every write; rolled back at the end.

    Each statement sees what is committed when it starts, so that who reads after waiting for a lock reads the newest.
    """
    with engine.connect() as connection:
        connection.execute(sa.text("SET TRANSACTION READ ONLY"))
        yield connection


def quoted(name: str) -> str:
    """Return a name as an SQL identifier, safe inside `sqlalchemy.text`."""
    return '"' + name.replace('"', '""').replace(":", "\\:") + '"'


def qualified(schema: str, table: str) -> str:
    """Return a table with its schema as SQL."""
    return f"{quoted(schema)}.{quoted(table)}"


def stream(conn: sa.Connection, statement: str, values: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query without holding more than a few of them."""
    options = {"stream_results": True, "yield_per": _FETCHED}
    result = conn.execute(sa.text(statement), dict(values), execution_options=options)
    try:
        for row in result:
            yield tuple(row)
    finally:
        result.close()


def by_trace(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Group neighbouring rows by their first column, and cut it off."""
    for trace_id, group in groupby(rows, key=itemgetter(0)):
        yield trace_id, [row[1:] for row in group]


def microseconds(column: str) -> str:
    """Return the SQL of a timestamp as whole microseconds since 1970: numeric all the way, so nothing is rounded."""
    return f"CASE WHEN isfinite({column}) THEN CAST(extract(epoch FROM {column}) * 1000000 AS bigint) END"


def floored(number: str, parameter: str = "length") -> str:
    """Return the SQL of a number cut down to a multiple of the bigint parameter, also below zero."""
    length = f"CAST(:{parameter} AS bigint)"
    return f"({number} - mod(mod({number}, {length}) + {length}, {length}))"


def window_keys(starts: Iterable[int | None], kind: WindowKind, unit_ns: int = 1) -> tuple[str, ...]:
    """Return the keys of the windows that hold these moments, in order; a moment outside the calendar has none."""
    keys: set[str] = set()
    for start in starts:
        try:
            keys |= set() if start is None else {window_containing(start * unit_ns, kind).key}
        except ConfigError:  # a clock gone wrong; the trace can be in no window
            continue
    return tuple(sorted(keys))


def length_in(kind: WindowKind, unit_ns: int) -> int:
    """Return the length of a window in a unit of so many nanoseconds."""
    return window_length_ns(kind) // unit_ns


def columns_of(conn: sa.Connection, schema: str, tables: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the types of the columns of each of these tables that exists."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in conn.execute(_COLUMNS, {"schema": schema, "tables": list(tables)}):
        found.setdefault(table, {})[column] = kind
    return found


def require_columns(conn: sa.Connection, schema: str, needed: Mapping[str, Sequence[str]], advice: str) -> None:
    """Make sure that a store has what will be read.

    Args:
        conn: the store's database.
        schema: where its tables are.
        needed: columns by table.
        advice: a sentence on the versions that are supported.

    Raises:
        StoreSchemaError: something is missing; one message names all of it.
    """
    found = columns_of(conn, schema, needed)
    lacking = [
        f"table {schema}.{table}" if table not in found else f"column {schema}.{table}.{column}"
        for table, columns in needed.items()
        for column in (columns if table in found else columns[:1])
        if table not in found or column not in found[table]
    ]
    if lacking:
        where = conn.engine.url.database or ""
        msg = f"The trace store in database {where!r} has no {' and no '.join(lacking)}. {advice}"
        raise StoreSchemaError(msg)
