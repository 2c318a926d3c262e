"""What PostgreSQL calls the types of the columns of the schema `stepacc`."""

from typing import Any

import sqlalchemy as sa

from stepacc_dagster.storage.columns import TransactionId

_NAMES: dict[type[sa.types.TypeEngine[Any]], str] = {
    sa.BigInteger: "bigint",
    sa.Integer: "integer",
    sa.Text: "text",
    sa.Boolean: "boolean",
    sa.Double: "double precision",
    sa.DateTime: "timestamptz",
    sa.LargeBinary: "bytea",
    sa.JSON: "jsonb",
    TransactionId: "xid8",
}
"""The first that fits, so the narrower types come first."""


def type_name(column: sa.Column[Any]) -> str:
    """Return the name of a column's type, as PostgreSQL shows it."""
    return next(name for kind, name in _NAMES.items() if isinstance(column.type, kind))
