"""Columns and the metadata that the tables of the schema `stepacc` share."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA = "stepacc"

metadata = sa.MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(constraint_name)s",
        "ck": "%(table_name)s_%(constraint_name)s",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
    },
)


def text(name: str, comment: str, *, null: bool = False) -> sa.Column[str]:
    """Text in code point order."""
    return sa.Column(name, sa.Text(collation="C"), nullable=null, comment=comment)


def ns(name: str, comment: str) -> sa.Column[int]:
    """A time in nanoseconds since the Unix epoch."""
    return sa.Column(name, sa.BigInteger(), nullable=True, comment=f"{comment}, ns since 1970; NULL: not recorded")


def integer(name: str, comment: str, *, null: bool = False) -> sa.Column[int]:
    """A count."""
    return sa.Column(name, sa.Integer(), nullable=null, comment=comment)


def jsonb(name: str, comment: str, *, null: bool = False) -> sa.Column[Any]:
    """JSON; None is NULL."""
    return sa.Column(name, JSONB(none_as_null=True), nullable=null, comment=comment)


def moment(name: str, comment: str) -> sa.Column[Any]:
    """A moment, by default that of the transaction."""
    return sa.Column(name, sa.DateTime(timezone=True), nullable=False, server_default=sa.text("now()"), comment=comment)


def erased_at(comment: str) -> sa.Column[Any]:
    """The moment at which content was erased; NULL: it was not."""
    return sa.Column("erased_at", sa.DateTime(timezone=True), comment=f"{comment}; NULL: it was not")


class TransactionId(sa.types.UserDefinedType[str]):
    """Postgres' 64-bit transaction id, as text."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the name of the type."""
        return "xid8"


def written_in(what: str, which: str) -> sa.Column[str]:
    """The transaction that wrote a row, by which `transactions` tells what came since."""
    return sa.Column(
        "written_in",
        TransactionId(),
        nullable=False,
        server_default=sa.text("pg_current_xact_id()"),
        comment=f"transaction that wrote {what}; tells which {which} came since somebody looked",
    )


def source() -> sa.Column[str]:
    """The source a row belongs to."""
    return text("source", "name of the source: one trace store with its settings")


def window() -> sa.Column[str]:
    """The window a row belongs to."""
    return text("window_key", "Dagster partition key of the window, UTC: 2026-11-30 or 2026-11-30-14:00")
