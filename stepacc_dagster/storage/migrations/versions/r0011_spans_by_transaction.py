"""Raw spans are followed by the transaction that wrote them, as annotations are, in place of a number.

Numbers were given when spans were written: those of a transaction that ended after a later one were passed by, unless it
held the lock of the landings.

Revision ID: 0011
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0011"
down_revision = "0010"

# What was there counts as written before every snapshot, but for what no look has come to yet. Such a look goes on from
# a snapshot that sees nothing of this transaction, nor of any that is under way.
_STATEMENTS = """
ALTER TABLE stepacc.otel_spans ADD COLUMN written_in xid8 DEFAULT '3' NOT NULL;
ALTER TABLE stepacc.otel_spans ALTER COLUMN written_in SET DEFAULT pg_current_xact_id();
UPDATE stepacc.otel_spans span SET written_in = pg_current_xact_id() FROM stepacc.feeds feed WHERE feed.source = span.source AND span.arrival > CAST(CASE WHEN feed.cursor ~ '^[0-9]{1,18}$' THEN feed.cursor END AS bigint);
UPDATE stepacc.feeds SET cursor = format('{"by":"transactions","seen":"%1$s:%1$s:"}', pg_snapshot_xmin(pg_current_snapshot())) WHERE cursor ~ '^[0-9]{1,18}$';
DROP INDEX stepacc.otel_spans_arrival;
ALTER TABLE stepacc.otel_spans DROP COLUMN arrival;
DROP SEQUENCE stepacc.arrivals;
CREATE INDEX otel_spans_written ON stepacc.otel_spans (source, written_in) INCLUDE (trace_id);
COMMENT ON COLUMN stepacc.otel_spans.written_in IS 'transaction that wrote the present content; tells which spans came since somebody looked'
"""

# Whoever changes a span, by whatever tool.
_REWRITTEN = """
CREATE FUNCTION stepacc.rewritten() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.written_in := pg_current_xact_id();
    RETURN NEW;
END $$
"""
_TRIGGER = """
CREATE TRIGGER rewritten BEFORE UPDATE ON stepacc.otel_spans
FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION stepacc.rewritten()
"""


def upgrade() -> None:
    """Exchange the columns, and carry the cursors over."""
    for statement in [*_STATEMENTS.split(";\n"), _REWRITTEN, _TRIGGER]:
        op.execute(statement)
