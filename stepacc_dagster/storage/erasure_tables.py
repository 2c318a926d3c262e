"""The tables of erasures: what was removed, and what is never to be stored again.

Neither holds the id of a user: only its digest, keyed with the salt of the database.
"""

import sqlalchemy as sa

from stepacc_dagster.storage.columns import integer, metadata, moment, text

EVERY_SOURCE = ""
"""Stands for every source, those to come included."""


def _many(name: str, comment: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False, comment=comment)


erasure_salt = sa.Table(
    "erasure_salt",
    metadata,
    sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False, comment="1: there is one salt"),
    sa.Column("salt", sa.LargeBinary(), nullable=False, comment="random bytes, the key of all digests here"),
    sa.PrimaryKeyConstraint("id"),
    sa.CheckConstraint("id = 1", name="single"),
    comment="The key of the digests in erasures and tombstones; made with the first erasure. Without it they tell "
    "nothing, and new ones do not meet them.",
)

erasures = sa.Table(
    "erasures",
    metadata,
    sa.Column("id", sa.BigInteger(), sa.Identity(always=True), comment="id of the erasure"),
    text("door", "command: somebody asked for it; landing, ingest: what came later was met there"),
    text("source", "name of the source; empty: every source"),
    text("target_type", "trace, session or user: by what it was asked for"),
    text("target_digest", "HMAC-SHA256 of the target's id, keyed with the salt, hex"),
    text("author", "who asked for it"),
    text("reason", "why"),
    moment("erased_at", "when"),
    integer("traces", "traces that were erased"),
    _many("raw_spans", "rows of otel_spans that were removed"),
    _many("spans", "rows of spans that were removed"),
    integer("score_metadata", "rows of score_metadata that were removed"),
    integer("messages", "messages of failed scores that were removed"),
    integer("annotations", "annotation revisions whose value and note were removed"),
    sa.PrimaryKeyConstraint("id"),
    sa.CheckConstraint("door IN ('command', 'landing', 'ingest')", name="door"),
    sa.CheckConstraint("target_type IN ('trace', 'session', 'user')", name="target_type"),
    comment="What was erased, why and when, and how much of it there was. Append-only.",
)

tombstones = sa.Table(
    "tombstones",
    metadata,
    text("kind", "trace, session or user"),
    text("key", "id of the trace; of a session or user the digest, as in erasures"),
    text("source", "name of the source; empty: every source"),
    sa.Column("erasure_id", sa.BigInteger(), sa.ForeignKey(erasures.c.id), nullable=False, comment="the erasure"),
    sa.PrimaryKeyConstraint("kind", "key", "source"),
    sa.CheckConstraint("kind IN ('trace', 'session', 'user')", name="kind"),
    comment="What is never stored again: these traces, and every trace of which a span names such a session or user.",
)
