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

_BATCH_ROWS = 1_000

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
        for group in _groups(rows, schema):
            writer.write_table(pa.Table.from_batches(group, schema))


def _groups(rows: Iterable[Row], schema: pa.Schema) -> Iterator[list[pa.RecordBatch]]:
    """Yield the rows of each row group: in Arrow's form, which takes a tenth of the memory of Python's objects."""
    group: list[pa.RecordBatch] = []
    batch: list[Row] = []
    count = characters = 0
    for row in rows:
        batch.append(row)
        count += 1
        characters += sum(len(value) for value in row if isinstance(value, str))
        full = count >= GROUP_ROWS or characters >= GROUP_CHARACTERS
        if full or len(batch) == _BATCH_ROWS:
            group.append(_record_batch(batch, schema))
            batch = []
        if full:
            yield group
            group, count, characters = [], 0, 0
    if batch:
        group.append(_record_batch(batch, schema))
    if group:
        yield group


def _record_batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)
