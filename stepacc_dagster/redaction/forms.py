"""The forms in which an id that a person gives may be stored: as it is, and as redaction leaves it."""

from collections.abc import Iterable

import sqlalchemy as sa

from stepacc_core.redaction import RedactionSettings, Redactor
from stepacc_dagster.redaction.doors import door_redactor
from stepacc_dagster.storage.redaction_key import has_key

_ANY_KEY = b"only to see whether anything is found"


def redacted_forms(engine: sa.Engine, ident: str, settings: Iterable[RedactionSettings]) -> tuple[str, ...]:
    """Return the forms of an id that differ from it: what the redaction by each of these settings makes of it.

    For an id in which nothing is found, and in a database in which nothing was ever redacted, no key is needed.

    Raises:
        RedactionKeyError: there is no key, or it is not the one of the database.
    """
    different = {repr(each): each for each in settings}.values()
    finding = [each for each in different if each.enabled and Redactor(each, _ANY_KEY).text(ident) != ident]
    with engine.connect() as connection:
        if not finding or not has_key(connection):
            return ()
    made = (door_redactor(engine, each) for each in finding)
    return tuple(sorted({redactor.text(ident) for redactor in made if redactor is not None} - {ident}))
