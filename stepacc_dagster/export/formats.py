"""The formats of an export, and which one a file's name asks for."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from stepacc_core.errors import ConfigError
from stepacc_dagster.errors import ExportError
from stepacc_dagster.export.columns import Column, Row
from stepacc_dagster.export.text_formats import write_csv, write_json_lines

Format = Literal["parquet", "csv", "jsonl"]
"""What an export can be written as."""

Writer = Callable[[BinaryIO, Sequence[Column], Iterable[Row]], None]
"""Writes the rows of some columns to a stream, which stays open."""

_SUFFIXES: dict[str, Format] = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}


def format_of(path: Path) -> Format:
    """Return the format that the end of a file's name stands for.

    Raises:
        ConfigError: it stands for none.
    """
    try:
        return _SUFFIXES[path.suffix.lower()]
    except KeyError:
        msg = (
            f"The name {path.name!r} tells no format; let it end in {', '.join(_SUFFIXES)}, or say which with --format."
        )
        raise ConfigError(msg, "format") from None


def writer_of(format_: Format) -> Writer:
    """Return what writes a format.

    Raises:
        ExportError: it needs a package that is not installed.
    """
    if format_ == "csv":
        return write_csv
    if format_ == "jsonl":
        return write_json_lines
    try:
        from stepacc_dagster.export.parquet import write_parquet  # noqa: PLC0415 (its package is an extra)
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        msg = (
            "Parquet is written with the package `pyarrow`, which is not installed; run: pip install "
            "'stepacc[dagster,export]', or write CSV or JSON lines."
        )
        raise ExportError(msg) from None
    return write_parquet
