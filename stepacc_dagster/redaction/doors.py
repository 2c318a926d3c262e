"""The redactor of a door: by the settings of its source and the key of its database."""

from collections.abc import Callable
from threading import Lock

import sqlalchemy as sa

from stepacc_core.redaction import RedactionSettings, Redactor
from stepacc_dagster.redaction.key import redaction_key
from stepacc_dagster.storage.redaction_key import confirm_key

_MADE: dict[tuple[str, bytes], Redactor] = {}
_MAKING = Lock()
"""A redactor takes a tenth of a second to make, and remembers what it went over."""

RedactorOf = Callable[[str], Redactor | None]
"""Gives the redactor of a source by its name."""


def door_redactor(engine: sa.Engine, settings: RedactionSettings) -> Redactor | None:
    """Return what redacts by these settings before something is stored in a database; None where they say not to.

    Raises:
        RedactionKeyError: there is no key, or it is not the one of the database.
    """
    if not settings.enabled:
        return None
    key = redaction_key()
    confirm_key(engine, key)
    with _MAKING:
        named = (repr(settings), key)
        if named not in _MADE:
            _MADE[named] = Redactor(settings, key)
        return _MADE[named]
