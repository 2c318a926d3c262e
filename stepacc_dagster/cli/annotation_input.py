"""Reading annotation files for the commands."""

import json
import re
import sys
from pathlib import Path

import click

from stepacc_core.annotation_files import FileFormat, parse_annotations
from stepacc_core.annotations import Annotation
from stepacc_core.errors import AnnotationError
from stepacc_dagster.cli.files import STDIN, once_from_input

INPUT = "standard input"
"""What standard input is called in messages, and as the origin of what comes from it."""

_CSV_HEADER = re.compile(r"[\w.]*(,[\w.]*)*\btarget[_.]id\b[\w.,]*\s*$")
_FORMATS: dict[str, FileFormat] = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".csv": "csv"}


annotation_files = click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    callback=once_from_input,
)


def name_of(path: Path) -> str:
    """Return what a file is called as an origin."""
    return INPUT if path == STDIN else path.name


def read_annotations(path: Path) -> tuple[Annotation, ...]:
    """Read an annotations file, or standard input for `-`; its name's ending tells the format, or else its content.

    Raises:
        AnnotationError: another ending, no UTF-8, or an entry is bad; the message names the file.
    """
    if path == STDIN:
        text = _decoded(sys.stdin.buffer.read() if sys.stdin else b"", INPUT)
        return parse_annotations(text, _format_of(text), name=INPUT)
    file_format = _FORMATS.get(path.suffix.lower())
    if file_format is None:
        msg = f"`{path}` ends with {path.suffix!r}; an annotations file ends with .yaml, .yml, .json or .csv."
        raise AnnotationError(msg)
    return parse_annotations(_decoded(path.read_bytes(), str(path)), file_format, name=str(path))


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"`{name}` is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8."
        raise AnnotationError(msg) from None


def _format_of(text: str) -> FileFormat:
    """Tell the format by the content: CSV by its header, JSON where it is valid, and YAML otherwise."""
    if _CSV_HEADER.match(text.partition("\n")[0]):
        return "csv"
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return "yaml"
    return "json"
