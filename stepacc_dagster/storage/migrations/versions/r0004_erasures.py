"""Erasures: what was removed, and what is never stored again.

Revision ID: 0004
"""
# ruff: noqa: E501 (a statement per comment)

from alembic import op

revision = "0004"
down_revision = "0003"

_STATEMENTS = """
CREATE TABLE stepacc.erasure_salt (
    id SMALLINT NOT NULL,
    salt BYTEA NOT NULL,
    CONSTRAINT erasure_salt_pkey PRIMARY KEY (id),
    CONSTRAINT erasure_salt_single CHECK (id = 1)
);
COMMENT ON TABLE stepacc.erasure_salt IS 'The key of the digests in erasures and tombstones; made with the first erasure. Without it they tell nothing, and new ones do not meet them.';
COMMENT ON COLUMN stepacc.erasure_salt.id IS '1: there is one salt';
COMMENT ON COLUMN stepacc.erasure_salt.salt IS 'random bytes, the key of all digests here';

CREATE TABLE stepacc.erasures (
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    door TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    target_type TEXT COLLATE "C" NOT NULL,
    target_digest TEXT COLLATE "C" NOT NULL,
    author TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL,
    erased_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    traces INTEGER NOT NULL,
    raw_spans BIGINT NOT NULL,
    spans BIGINT NOT NULL,
    score_metadata INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    annotations INTEGER NOT NULL,
    CONSTRAINT erasures_pkey PRIMARY KEY (id),
    CONSTRAINT erasures_door CHECK (door IN ('command', 'landing', 'ingest')),
    CONSTRAINT erasures_target_type CHECK (target_type IN ('trace', 'session', 'user'))
);
COMMENT ON TABLE stepacc.erasures IS 'What was erased, why and when, and how much of it there was. Append-only.';
COMMENT ON COLUMN stepacc.erasures.id IS 'id of the erasure';
COMMENT ON COLUMN stepacc.erasures.door IS 'command: somebody asked for it; landing, ingest: what came later was met there';
COMMENT ON COLUMN stepacc.erasures.source IS 'name of the source; empty: every source';
COMMENT ON COLUMN stepacc.erasures.target_type IS 'trace, session or user: by what it was asked for';
COMMENT ON COLUMN stepacc.erasures.target_digest IS 'HMAC-SHA256 of the target''s id, keyed with the salt, hex';
COMMENT ON COLUMN stepacc.erasures.author IS 'who asked for it';
COMMENT ON COLUMN stepacc.erasures.reason IS 'why';
COMMENT ON COLUMN stepacc.erasures.erased_at IS 'when';
COMMENT ON COLUMN stepacc.erasures.traces IS 'traces that were erased';
COMMENT ON COLUMN stepacc.erasures.raw_spans IS 'rows of otel_spans that were removed';
COMMENT ON COLUMN stepacc.erasures.spans IS 'rows of spans that were removed';
COMMENT ON COLUMN stepacc.erasures.score_metadata IS 'rows of score_metadata that were removed';
COMMENT ON COLUMN stepacc.erasures.messages IS 'messages of failed scores that were removed';
COMMENT ON COLUMN stepacc.erasures.annotations IS 'annotation revisions whose value and note were removed';

CREATE TABLE stepacc.tombstones (
    kind TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    source TEXT COLLATE "C" NOT NULL,
    erasure_id BIGINT NOT NULL,
    CONSTRAINT tombstones_pkey PRIMARY KEY (kind, key, source),
    CONSTRAINT tombstones_kind CHECK (kind IN ('trace', 'session', 'user')),
    CONSTRAINT tombstones_erasure_id_fkey FOREIGN KEY(erasure_id) REFERENCES stepacc.erasures (id)
);
COMMENT ON TABLE stepacc.tombstones IS 'What is never stored again: these traces, and every trace of which a span names such a session or user.';
COMMENT ON COLUMN stepacc.tombstones.kind IS 'trace, session or user';
COMMENT ON COLUMN stepacc.tombstones.key IS 'id of the trace; of a session or user the digest, as in erasures';
COMMENT ON COLUMN stepacc.tombstones.source IS 'name of the source; empty: every source';
COMMENT ON COLUMN stepacc.tombstones.erasure_id IS 'the erasure';

ALTER TABLE stepacc.traces ADD COLUMN erased_at TIMESTAMP WITH TIME ZONE;
COMMENT ON COLUMN stepacc.traces.erased_at IS 'when its spans and all else it held were erased; it is never scored again; NULL: it was not';
ALTER TABLE stepacc.sessions ADD COLUMN erased_at TIMESTAMP WITH TIME ZONE;
COMMENT ON COLUMN stepacc.sessions.erased_at IS 'when it, or a trace of it, was erased; it is never scored again; NULL: it was not';
ALTER TABLE stepacc.annotations ADD COLUMN erased_at TIMESTAMP WITH TIME ZONE;
COMMENT ON COLUMN stepacc.annotations.erased_at IS 'when value and note were erased, with the trace or session they are about; the value is JSON null then; NULL: it was not';
COMMENT ON TABLE stepacc.annotations IS 'What people expect. Append-only: a change or a withdrawal is a new revision, no row is ever updated. Only the erasure of a trace or session empties what was said of it.'
"""


def upgrade() -> None:
    """Create the tables of erasures, and let traces, sessions and annotations say that they were erased."""
    for statement in _STATEMENTS.split(";\n"):
        op.execute(statement)
