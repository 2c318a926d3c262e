"""Opening what a source's settings name: its trace store, in whatever database that is."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import sqlalchemy as sa

from stepacc_dagster.database import check_reachable, connect_engine
from stepacc_dagster.resources import url_from_environment
from stepacc_dagster.sources import Source
from stepacc_dagster.stores.base import TraceStore
from stepacc_dagster.stores.factory import build_store


@contextmanager
def opened_store(source: Source, engine: sa.Engine) -> Iterator[TraceStore]:
    """Give the source's trace store, once its database answers.

    Args:
        source: its settings.
        engine: stepacc's own database, in which the store is where the settings name no other.

    Raises:
        ConfigError: the environment variable of the store's URL is not set.
        DatabaseError: the store's database does not answer.
    """
    with ExitStack() as stack:
        store_engine = engine
        if source.store_url_env:
            store_engine = connect_engine(url_from_environment(source.store_url_env))
            stack.callback(store_engine.dispose)
            check_reachable(store_engine)
        yield build_store(source.store, store_engine, source.name)
