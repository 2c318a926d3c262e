"""Traces and sessions as people name them on the command line: by an id, or by the beginning of one."""

from contextlib import suppress

import sqlalchemy as sa

from stepacc_core.model import PartitionType
from stepacc_dagster.cli.redacting import stored_forms
from stepacc_dagster.errors import UnknownIdError
from stepacc_dagster.storage.occurrences import Occurrence, find_occurrences


def named_occurrences(
    engine: sa.Engine, connection: sa.Connection, kind: PartitionType, ident: str, source: str | None
) -> list[Occurrence]:
    """Return the trace or session that an id names, in each source that knows it.

    The id of a session may hold what redaction replaces: it is found by the first form of it by which any is known.

    Raises:
        UnknownIdError: nothing is known by it, or several ids begin with it.
    """
    forms = (ident,) if kind == "trace" else stored_forms(engine, ident, source)
    for form in forms[:-1]:
        with suppress(UnknownIdError):
            return find_occurrences(connection, kind, form, source)
    return find_occurrences(connection, kind, forms[-1], source)
