"""Connections to Dagster's storage that stay open between statements, for as long as a command runs.

dagster-postgres opens a connection for every statement unless it is told that it serves a UI: some thirty for each
partition of a backfill, which took longer than all that was said over them.
"""

import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
import psycopg2
import psycopg2.extensions
import sqlalchemy as sa
from sqlalchemy.pool import Pool

_OVERFLOW = 10
"""Connections of one storage beside the first; a run uses few at a time."""
_RENEWED_AFTER = 3_600
"""Seconds after which a connection is replaced before it is used again."""
_NO_LIMIT = 0


@contextmanager
def kept_connections(instance: dg.DagsterInstance) -> Iterator[None]:
    """Let an instance keep its connections; one that the server has closed meanwhile is replaced before it is used."""
    instance.optimize_for_webserver(statement_timeout=_NO_LIMIT, pool_recycle=_RENEWED_AFTER, max_overflow=_OVERFLOW)
    first = not sa.event.contains(Pool, "checkout", _replace_if_closed)
    if first:
        sa.event.listen(Pool, "checkout", _replace_if_closed)
    try:
        yield
    finally:
        if first:
            sa.event.remove(Pool, "checkout", _replace_if_closed)


def _replace_if_closed(connection: Any, _record: object, _proxy: object) -> None:
    """Look whether Dagster's connection is alive (its pools are not reachable, so all are listened to).

    A server says nothing on an idle connection unless it ends it, so only one that has something to read is tried.
    """
    if not isinstance(connection, psycopg2.extensions.connection) or _is_silent(connection):
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except psycopg2.Error as error:
        raise sa.exc.DisconnectionError from error


def _is_silent(connection: psycopg2.extensions.connection) -> bool:
    if connection.closed:
        return False
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return not selector.select(0)
