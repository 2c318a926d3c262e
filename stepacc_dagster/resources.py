"""The database as a Dagster resource."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg
import sqlalchemy as sa

from stepacc_core.errors import ConfigError
from stepacc_dagster.database import normalise_url
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.opening import ready_engine


class StepaccDatabase(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The Postgres database of a source, named by the environment variable that holds its URL.

    Only the variable's name is configuration, so the URL with its password shows neither in YAML nor in the UI. Nothing
    is connected when a run starts: a database that is away then is met inside the step, which is tried again.
    """

    url_env: str = "STEPACC_DATABASE_URL"

    @contextmanager
    def engine(self) -> Iterator[sa.Engine]:
        """Give an engine over a database that answers and has the expected schema; disposed of at the end.

        Raises:
            ConfigError: the environment variable is not set, or the URL is refused.
            DatabaseError: the database does not answer.
            SchemaError: the schema is missing, older or newer.
        """
        with ready_engine(url_from_environment(self.url_env)) as engine:
            yield engine


def resource_key(source: Source) -> str:
    """Return the key of a source's database resource; each source may have a database of its own."""
    return f"stepacc_database_{source.name}"


def url_from_environment(variable: str) -> str:
    """Return the database URL that an environment variable holds, in the form that an engine takes.

    Raises:
        ConfigError: the variable is not set.
        DatabaseUrlError: its value is of no use.
    """
    url = os.environ.get(variable)
    if not url:
        msg = (
            f"The environment variable `{variable}` is not set; set it to the database's URL, such as "
            "postgresql+psycopg://user:password@host:5432/database."
        )
        raise ConfigError(msg)
    return normalise_url(url)
