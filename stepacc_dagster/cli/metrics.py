"""Options that name a metric."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from stepacc_core.errors import ConfigError, UnknownMetricError


@contextmanager
def refused_as_usage() -> Iterator[None]:
    """Take an unknown metric or a refused config for what it is here: a wrong use of the command line (exit code 2)."""
    try:
        yield
    except (ConfigError, UnknownMetricError) as error:
        raise click.UsageError(str(error)) from error
