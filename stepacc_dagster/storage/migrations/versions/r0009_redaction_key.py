"""The fingerprint of the key with which values are redacted.

Revision ID: 0009
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0009"
down_revision = "0008"

_STATEMENTS = """
CREATE TABLE stepacc.redaction_key (
    id SMALLINT NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    first_used_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT redaction_key_pkey PRIMARY KEY (id),
    CONSTRAINT redaction_key_single CHECK (id = 1)
);
COMMENT ON TABLE stepacc.redaction_key IS 'With which key values are redacted here: under another one, equal values would have unequal marks.';
COMMENT ON COLUMN stepacc.redaction_key.id IS '1: there is one key';
COMMENT ON COLUMN stepacc.redaction_key.fingerprint IS 'HMAC-SHA256 of a constant, keyed with the key, hex; the key itself is in no table';
COMMENT ON COLUMN stepacc.redaction_key.first_used_at IS 'when something was first redacted with it'
"""


def upgrade() -> None:
    """Create the table."""
    for statement in _STATEMENTS.split(";\n"):
        op.execute(statement)
