"""Parquet, by pyarrow: typed columns in row groups, of which one at a time is in memory."""

from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO

import pyarrow as pa
from pyarrow import parquet

from stepacc_dagster.export.columns import Column, ColumnKind, Row

GROUP_ROWS = 25_000
"""Most rows of a row group."""

GROUP_CHARACTERS = 16_000_000
"""Characters of text after which a row group ends early: metadata may be long."""

_TYPES: dict[ColumnKind, pa.DataType] = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "moment": pa.timestamp("us", tz="UTC"),
    "json": pa.string(),
}


def write_parquet(stream: BinaryIO, columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Write rows as Parquet, compressed with Zstandard.

    Text is `string`, integers are `int64`, numbers `double`, moments `timestamp[us, UTC]`; each column carries what it
    says as `description` in its field's metadata.
    """
    schema = pa.schema(
        [
            pa.field(column.name, _TYPES[column.kind], not column.required, {"description": column.about})
            for column in columns
        ]
    )
    with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        for group in _groups(rows):
            values = zip(*group, strict=True)
            arrays = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    group: list[Row] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += sum(len(value) for value in row if isinstance(value, str))
        if len(group) == GROUP_ROWS or characters >= GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group
