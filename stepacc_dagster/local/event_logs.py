"""The Dagster instances of this machine whose event logs may tell of traces."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import dagster as dg
import sqlalchemy as sa

from stepacc_dagster.database import DAGSTER_SCHEMA, DAGSTER_URL_VARIABLE
from stepacc_dagster.local.home import local_home
from stepacc_dagster.local.instance import local_instance

_HAS_EVENTS = sa.text("SELECT to_regclass(:name) IS NOT NULL")


@contextmanager
def instances_of_this_machine(url: str, engine: sa.Engine) -> Iterator[list[dg.DagsterInstance]]:
    """Open the instance that `DAGSTER_HOME` names, and the local one of stepacc where it was ever used.

    Args:
        url: the database of stepacc.
        engine: over that database.
    """
    with ExitStack() as stack:
        instances: list[dg.DagsterInstance] = []
        if os.environ.get("DAGSTER_HOME"):
            instances.append(stack.enter_context(dg.DagsterInstance.get()))
        if DAGSTER_URL_VARIABLE in os.environ or _has_events(engine):
            instances.append(stack.enter_context(local_instance(local_home(), url)))
        yield instances


def _has_events(engine: sa.Engine) -> bool:
    with engine.connect() as connection:
        return bool(connection.scalar(_HAS_EVENTS, {"name": f"{DAGSTER_SCHEMA}.event_logs"}))
