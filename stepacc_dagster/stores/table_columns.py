"""The columns of a table of one's own: that they exist, their types, and how each is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stepacc_dagster.stores.errors import StoreSchemaError
from stepacc_dagster.stores.settings import TableSettings
from stepacc_dagster.stores.sql import columns_of, microseconds, quoted, require_columns
from stepacc_dagster.windows import moment

_ZONED, _NAIVE = "timestamp with time zone", "timestamp without time zone"
_TIMES = (_ZONED, _NAIVE)
_NUMBERS = ("bigint", "integer", "smallint")
_IDS = ("text", "character varying", "character", "uuid", "bytea", *_NUMBERS)
_TEXTS = ("text", "character varying", "character")
_DOCUMENTS = ("jsonb", "json", "text", "character varying")
_TYPES: dict[str, tuple[str, ...]] = {
    "trace_id": _IDS,
    "span_id": _IDS,
    "parent_span_id": _IDS,
    "name": _TEXTS,
    "start_time": (*_TIMES, *_NUMBERS),
    "end_time": (*_TIMES, *_NUMBERS),
    "attributes": _DOCUMENTS,
    "events": _DOCUMENTS,
    "resource": _DOCUMENTS,
    "status_message": _TEXTS,
    "scope_name": _TEXTS,
    "arrival": (*_TIMES, *_NUMBERS),
}
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_ADVICE = "Correct the columns in the settings of the table store."


@dataclass(frozen=True, slots=True)
class CheckedColumns:
    """Columns that exist, with their types.

    Attributes:
        names: column by field of the mapping.
        types: Postgres type by field.
        number_ns: nanoseconds of the unit in which numbers tell times.
    """

    names: Mapping[str, str]
    types: Mapping[str, str]
    number_ns: int

    def quoted(self, field: str) -> str:
        """Return a column as an SQL identifier."""
        return quoted(self.names[field])

    def is_time(self, field: str) -> bool:
        """Tell whether a column is a timestamp and no number."""
        return self.types[field] in _TIMES

    def as_text(self, field: str, expression: str | None = None) -> str:
        """Return the SQL of a column, or of an expression of its type, as text; NULL for one that is not read."""
        if field not in self.names:
            return "NULL"
        value = expression or self.quoted(field)
        return f"encode({value}, 'hex')" if self.types[field] == "bytea" else f"CAST({value} AS text)"

    def time(self, field: str, expression: str | None = None) -> str:
        """Return the SQL of a time, as a whole number of its unit; a timestamp's is the microsecond."""
        if field not in self.names:
            return "NULL"
        value = expression or self.quoted(field)
        return microseconds(value) if self.is_time(field) else f"CAST({value} AS bigint)"

    def moment(self, field: str, parameter: str) -> str:
        """Return the SQL of a parameter in microseconds as a value that compares with a timestamp column by index."""
        zone = "" if self.types[field] == _ZONED else " AT TIME ZONE 'UTC'"
        return f"((timestamptz 'epoch' + CAST(:{parameter} AS bigint) * interval '1 microsecond'){zone})"

    def unit_ns(self, field: str) -> int:
        """Return the nanoseconds of the unit in which `time` gives a column."""
        return _UNITS["us"] if self.is_time(field) else self.number_ns

    def bound(self, ns: int) -> Any:
        """Return a moment as a value that compares with the start column by index; windows start at whole seconds."""
        if not self.is_time("start_time"):
            return ns // self.number_ns
        return moment(ns) if self.types["start_time"] == _ZONED else moment(ns).replace(tzinfo=None)

    def nanoseconds(self, value: int | None) -> int | None:
        """Return a start or end in nanoseconds, None where it is missing or says nothing."""
        return value * self.unit_ns("start_time") if value is not None and value > 0 else None


def checked_columns(conn: sa.Connection, settings: TableSettings) -> CheckedColumns:
    """Look up the columns that the settings name.

    Raises:
        StoreSchemaError: one is missing, or has a type that cannot be read.
    """
    names = settings.columns.given()
    others = [*settings.attribute_columns.values(), *([settings.project_column] if settings.project_column else [])]
    require_columns(conn, settings.schema, {settings.table: [*names.values(), *others]}, _ADVICE)
    found = columns_of(conn, settings.schema, [settings.table])[settings.table]
    types = {field: found[column] for field, column in names.items()}
    for field, kind in types.items():
        allowed = _TYPES.get(field)
        if allowed is not None and kind not in allowed:
            msg = (
                f"The column {settings.schema}.{settings.table}.{names[field]} is of type {kind}, and {field} has to "
                f"be {' or '.join(allowed)}. {_ADVICE}"
            )
            raise StoreSchemaError(msg)
    if "end_time" in types and types["end_time"] != types["start_time"]:
        msg = (
            f"The columns {names['start_time']} and {names['end_time']} of {settings.schema}.{settings.table} have "
            f"different types, {types['start_time']} and {types['end_time']}; start_time and end_time need the same. "
            f"{_ADVICE}"
        )
        raise StoreSchemaError(msg)
    return CheckedColumns(names, types, _UNITS[settings.time_unit])
