"""Opening the storage: an engine over a database that answers and has the schema this version works with."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from stepacc_dagster.database import check_reachable, connect_engine, open_database
from stepacc_dagster.storage.schema import check_schema


@contextmanager
def ready_engine(url: str) -> Iterator[sa.Engine]:
    """Give an engine over a database, once it answers and has the expected schema; disposed of at the end.

    Raises:
        DatabaseError: the database does not answer, or the URL is of no use.
        SchemaError: the schema is missing, older or newer.
    """
    engine = connect_engine(url)
    try:
        check_reachable(engine)
        with engine.connect() as connection:
            check_schema(connection)
        yield engine
    finally:
        engine.dispose()


@contextmanager
def open_storage() -> Iterator[sa.Engine]:
    """Give an engine over the database of `STEPACC_DATABASE_URL`, else of the local server.

    Raises:
        DatabaseError, SchemaError: as `ready_engine`.
    """
    with open_database() as url, ready_engine(url) as engine:
        yield engine
