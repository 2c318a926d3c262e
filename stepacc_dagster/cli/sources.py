"""The `--source` option."""

import click

source_option = click.option("--source", help="Name of the source; the only configured one where left out.")


def source_or_only(name: str | None) -> str:
    """Return the source that was named, whether or not it is configured yet, or the only configured one.

    Raises:
        ConfigError: none was named, and there is not exactly one.
    """
    if name:
        return name
    from stepacc_dagster.local.source import local_source  # noqa: PLC0415 (loads Dagster, seconds of waiting)

    return local_source(None).name
