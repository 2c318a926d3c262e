"""The table that tells with which key the values in a database are redacted."""

import sqlalchemy as sa

from stepacc_dagster.storage.columns import metadata, moment, text

redaction_key = sa.Table(
    "redaction_key",
    metadata,
    sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False, comment="1: there is one key"),
    text("fingerprint", "HMAC-SHA256 of a constant, keyed with the key, hex; the key itself is in no table"),
    moment("first_used_at", "when something was first redacted with it"),
    sa.PrimaryKeyConstraint("id"),
    sa.CheckConstraint("id = 1", name="single"),
    comment="With which key values are redacted here: under another one, equal values would have unequal marks.",
)
