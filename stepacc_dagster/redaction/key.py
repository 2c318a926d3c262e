"""The key of the hashes in marks.

Whoever has it can find out whether a value that he guesses is there, so it is in no table; all processes that store in
one database need the same. A private database is in the same home as its key, which is made there by itself.
"""

import os

from stepacc_dagster.errors import RedactionKeyError
from stepacc_dagster.failures import URL_VARIABLE

KEY_VARIABLE = "STEPACC_REDACTION_KEY"

_FEWEST = 32
"""Characters of a key: hex of 16 random bytes."""
_MAKE = "make one with `openssl rand -hex 32`, and give every process that stores in this database the same"


def redaction_key() -> bytes:
    """Return the key: that of `STEPACC_REDACTION_KEY`, else for the private server that of the local home.

    Raises:
        RedactionKeyError: the variable holds too little, or there is none for a database that others may share.
    """
    if (given := key_of_environment()) is not None:
        return given
    if os.environ.get(URL_VARIABLE):
        msg = (
            f"{KEY_VARIABLE} is not set, and secrets and personal data are redacted with a key before anything is "
            f"stored in the database of {URL_VARIABLE}: {_MAKE}. `redaction: {{enabled: false}}` in a source's "
            "defs.yaml stores its values as they are."
        )
        raise RedactionKeyError(msg)
    from stepacc_dagster.local.redaction_key import kept_key  # noqa: PLC0415 (it needs fcntl, which Windows lacks)

    return kept_key().encode()


def has_own_key() -> bool:
    """Tell whether the key is that of the private server, which comes about by itself."""
    return not os.environ.get(KEY_VARIABLE, "").strip() and not os.environ.get(URL_VARIABLE)


def key_of_environment() -> bytes | None:
    """Return the key of the environment; None where it has none.

    Raises:
        RedactionKeyError: it holds too little.
    """
    given = os.environ.get(KEY_VARIABLE, "").strip()
    if not given:
        return None
    if len(given) < _FEWEST:
        msg = f"{KEY_VARIABLE} holds {len(given)} characters, and {_FEWEST} are needed; {_MAKE}."
        raise RedactionKeyError(msg)
    return given.encode()
