"""The columns of a table of one's own: that they exist, their types, and how each is read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa

from stepacc_dagster.stores.errors import StoreSchemaError
from stepacc_dagster.stores.read_columns import ReadColumn, SpanField
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
_SHOWN_TYPES = {_IDS: "id", _TEXTS: "text", _DOCUMENTS: "json", (*_TIMES, *_NUMBERS): "time"}
"""What a catalog calls types that are known only once the database was asked."""
_FIELDS: dict[str, tuple[SpanField, ...]] = {
    "trace_id": ("trace_id",),
    "span_id": ("span_id",),
    "name": ("name",),
    "start_time": ("start_time_unix_nano",),
    "parent_span_id": ("parent_span_id",),
    "end_time": ("end_time_unix_nano",),
    "attributes": ("attributes",),
    "events": ("events",),
    "resource": ("resource",),
    "status": ("status",),
    "status_message": ("status_message",),
    "scope_name": ("scope_name",),
}
"""The field of a raw span that is made of each field of the mapping."""
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


def columns_read(settings: TableSettings) -> tuple[ReadColumn, ...]:
    """Return the columns that the settings name, each once, without a look at the database."""
    read = [
        ReadColumn(column, _SHOWN_TYPES.get(_TYPES.get(field, ()), "text"), f"read as {field}", _FIELDS.get(field, ()))
        for field, column in settings.columns.given().items()
    ]
    read += [
        ReadColumn(column, "text", f"read as the attribute {name}", ("attributes",))
        for name, column in settings.attribute_columns.items()
    ]
    if settings.project_column:
        read.append(ReadColumn(settings.project_column, "text", "tells agents apart, as `store.projects` lists them"))
    return tuple(_together(same) for same in _by_name(read).values())


def _by_name(read: Iterable[ReadColumn]) -> dict[str, list[ReadColumn]]:
    grouped: dict[str, list[ReadColumn]] = {}
    for column in read:
        grouped.setdefault(column.name, []).append(column)
    return grouped


def _together(same: Sequence[ReadColumn]) -> ReadColumn:
    """Return one column that is read as several things."""
    fields = dict.fromkeys(field for column in same for field in column.fields)
    return replace(same[0], description="; ".join(column.description for column in same), fields=tuple(fields))


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
