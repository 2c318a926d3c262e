"""Reading annotation files for the commands."""

from pathlib import Path

from stepacc_core.annotation_files import FileFormat, parse_annotations
from stepacc_core.annotations import Annotation
from stepacc_core.errors import AnnotationError

_FORMATS: dict[str, FileFormat] = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".csv": "csv"}


def read_annotations(path: Path) -> tuple[Annotation, ...]:
    """Read an annotations file; its name's ending tells the format.

    Raises:
        AnnotationError: another ending, no UTF-8, or an entry is bad; the message names the file.
    """
    file_format = _FORMATS.get(path.suffix.lower())
    if file_format is None:
        msg = f"`{path}` ends with {path.suffix!r}; an annotations file ends with .yaml, .yml, .json or .csv."
        raise AnnotationError(msg)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"`{path}` is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8."
        raise AnnotationError(msg) from None
    return parse_annotations(text, file_format, name=str(path))
