"""Holding that all who store in a database redact with one key."""

import hmac

import sqlalchemy as sa

from stepacc_dagster.errors import RedactionKeyError

_FINGERPRINT = sa.text("SELECT fingerprint FROM stepacc.redaction_key")
_NOTE = sa.text("INSERT INTO stepacc.redaction_key (id, fingerprint) VALUES (1, :fingerprint) ON CONFLICT DO NOTHING")


def fingerprint_of(key: bytes) -> str:
    """Return the fingerprint of a key, which tells nothing of it."""
    return hmac.digest(key, b"stepacc redaction key", "sha256").hex()


def has_key(conn: sa.Connection) -> bool:
    """Tell whether anything was ever redacted in a database."""
    return conn.scalar(_FINGERPRINT) is not None


def confirm_key(engine: sa.Engine, key: bytes) -> None:
    """See that a key is the one of the database; the first one becomes it.

    Raises:
        RedactionKeyError: it is another one.
    """
    with engine.begin() as connection:
        if not has_key(connection):
            connection.execute(_NOTE, {"fingerprint": fingerprint_of(key)})
        refuse_other_key(connection, key)


def refuse_other_key(conn: sa.Connection, key: bytes) -> None:
    """Refuse a key that is not the one of the database; where there is none yet, any will do.

    Raises:
        RedactionKeyError: it is another one.
    """
    own, known = fingerprint_of(key), conn.scalar(_FINGERPRINT)
    if known is not None and not hmac.compare_digest(own, known):
        msg = (
            f"The redaction key here (fingerprint {own[:8]}) is not the one that the values in this database were "
            f"redacted with (fingerprint {known[:8]}), so equal values would no longer be equal: set "
            "STEPACC_REDACTION_KEY to that key. If it is lost, see docs/redaction.md."
        )
        raise RedactionKeyError(msg)
