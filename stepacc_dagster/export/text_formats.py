"""CSV and JSON lines: how the values of an export look as text."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO

from stepacc_dagster.export.columns import Column, ColumnKind, Row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FORMULA = frozenset("=+-@＝＋－＠")  # noqa: RUF001 (East Asian spreadsheets take the wide forms too)
"""Characters with which a cell becomes a formula."""


def write_csv(stream: BinaryIO, columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Write rows as CSV (RFC 4180) in UTF-8, with a line of names.

    Missing values are empty cells. Text that a spreadsheet would take for a formula has an apostrophe in front, as has
    text that begins with one: taking one apostrophe off gives every text back (`guarded`).
    """
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=False)
    try:
        writer = csv.writer(text)
        writer.writerow([column.name for column in columns])
        cells = [_CELLS[column.kind] for column in columns]
        writer.writerows(
            [None if value is None else cell(value) for cell, value in zip(cells, row, strict=True)] for row in rows
        )
    finally:
        text.detach()  # flushes; the stream is its owner's to close


def write_json_lines(stream: BinaryIO, columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Write each row as a JSON object on a line of its own, in UTF-8, with every column.

    Missing values are null. NaN and infinities, which JSON has not, are their names as text, as in protobuf's JSON.
    JSON text is there as the value it stands for, digit by digit.
    """
    members = [(f"{json.dumps(column.name)}: ", _VALUES[column.kind]) for column in columns]
    for row in rows:
        told = ", ".join(
            f"{name}{'null' if value is None else written(value)}"
            for (name, written), value in zip(members, row, strict=True)
        )
        stream.write(f"{{{told}}}\n".encode())


def guarded(value: str) -> str:
    """Return text as a cell that no spreadsheet takes for a formula.

    Guarded by an apostrophe in front are texts whose first character other than a space is one of `=`, `+`, `-`, `@`
    (or their wide forms), that begin with a tab or the end of a line, and that begin with an apostrophe themselves.
    """
    if not value:
        return value
    stripped = value.lstrip()
    if value[0] in "'\t\r\n" or (stripped and stripped[0] in _FORMULA):
        return f"'{value}"
    return value


def _moment(microseconds: int) -> str:
    told = _EPOCH + timedelta(microseconds=microseconds)
    return told.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _json_text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json_number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'"{_number(value)}"'


_CELLS: dict[ColumnKind, Callable[[Any], str]] = {
    "text": guarded,
    "integer": str,
    "number": _number,
    "moment": _moment,
    "json": guarded,
}
_VALUES: dict[ColumnKind, Callable[[Any], str]] = {
    "text": _json_text,
    "integer": str,
    "number": _json_number,
    "moment": lambda value: f'"{_moment(value)}"',
    "json": str,
}
