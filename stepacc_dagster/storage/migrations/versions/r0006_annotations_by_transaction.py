"""Annotations are followed by the transaction that wrote them, and windows remember the rules they were scored by.

The trigger that marked windows missed an annotation whose transaction was open while its trace was ingested and scored,
and made annotators and ingests wait for each other.

Revision ID: 0006
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0006"
down_revision = "0005"

_STATEMENTS = """
DROP TRIGGER annotated ON stepacc.annotations;
DROP FUNCTION stepacc.annotated();
ALTER TABLE stepacc.annotations ADD COLUMN written_in xid8 DEFAULT pg_current_xact_id() NOT NULL;
COMMENT ON COLUMN stepacc.annotations.written_in IS 'transaction that wrote the revision; tells which ones came since somebody looked';
CREATE INDEX annotations_written ON stepacc.annotations (source, written_in);
ALTER TABLE stepacc.feeds ADD COLUMN annotations_seen TEXT COLLATE "C";
COMMENT ON COLUMN stepacc.feeds.annotations_seen IS 'snapshot of the last look at the annotations; NULL: there was none';
ALTER TABLE stepacc.window_scores ADD COLUMN rules TEXT COLLATE "C";
COMMENT ON COLUMN stepacc.window_scores.rules IS 'fingerprint of the settings that say what is scored and when: kinds, the unannotated, settling'
"""


def upgrade() -> None:
    """Drop the trigger, and add the columns."""
    for statement in _STATEMENTS.split(";\n"):
        op.execute(statement)
