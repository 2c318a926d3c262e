"""Reading annotation files: YAML, JSON and CSV (contract of `agent.step_accuracy`, section 11).

A file is taken whole or not at all: one bad entry refuses it, and the error lists every bad entry.
"""

import contextlib
import csv
import io
import json
from collections.abc import Hashable, Mapping
from typing import Any, Literal

import yaml
from pydantic import ValidationError

from stepacc_core.annotation_entries import AnnotationFile, AnnotationFileEntry
from stepacc_core.annotation_places import DocumentPlaces, Places, RowPlaces
from stepacc_core.annotation_problems import problems_of
from stepacc_core.annotations import EXPECTED_STEPS_KEY, KEYS, Annotation
from stepacc_core.errors import AnnotationError
from stepacc_core.nearest import meant
from stepacc_core.unique_keys import unique_keys

FileFormat = Literal["yaml", "json", "csv"]

_CSV_COLUMNS = ("source", "target_type", "target_id", "partition_type", *KEYS, "author", "note")


class _Loader(yaml.SafeLoader):
    """A safe loader for what becomes JSON.

    It refuses a mapping with a key twice, of which YAML would keep the last; a key is the text it is written as, though
    YAML takes `on` and `no` for booleans; and so is a date.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 (PyYAML's signature)
        """Build a mapping, each key of which stands once."""
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                key.tag = _TEXT
        unique_keys([(key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
        return super().construct_mapping(node, deep)


_MERGE, _TEXT = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:str"
_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: node.value)


def parse_annotations(text: str, file_format: FileFormat, *, name: str) -> tuple[Annotation, ...]:
    """Parse an annotations file.

    Args:
        text: the file's content.
        file_format: `yaml`, `json` or `csv`. In CSV the columns are source, target_type, target_id, partition_type,
            expected_steps and reference_trajectories (JSON text), author and note; empty cells are absent values.
        name: what to call the file in messages.

    Returns:
        The annotations in the order of the file; an entry with both keys makes one for each.

    Raises:
        AnnotationError: the file cannot be read, an entry is bad, or two entries have one target; every bad entry is
            named with its number and what is allowed.
    """
    source, entries, places = _read(text, file_format, name)
    annotations: list[Annotation] = []
    problems: list[str] = []
    seen: dict[tuple[Any, ...], int] = {}
    for number, raw in enumerate(entries, start=1):
        try:
            made = AnnotationFileEntry.model_validate(raw).annotations(source)
        except ValidationError as error:
            for problem in problems_of(error, AnnotationFileEntry):
                line = places.line((number - 1, *problem.path), problem.unknown)
                at = f", line {line}" if line else ""
                problems.append(f"entry {number}{_target_of(raw)}{at}: {problem.said}")
            continue
        for annotation in made:
            first = seen.setdefault((annotation.source, annotation.target, annotation.key), number)
            if first != number:
                problems.append(
                    f"entry {number}: the `{annotation.key}` of {annotation.target} stand in entry {first} already; "
                    "keep one"
                )
        annotations += made
    if problems:
        msg = f"`{name}` is not taken, none of its entries: " + "; ".join(problems) + "."
        raise AnnotationError(msg)
    return tuple(annotations)


def _read(text: str, file_format: FileFormat, name: str) -> tuple[str | None, list[Any], Places]:
    if file_format == "csv":
        return _csv_entries(text, name)
    return *_document_entries(text, file_format, name), DocumentPlaces(text)


def _document_entries(text: str, file_format: FileFormat, name: str) -> tuple[str | None, list[Any]]:
    try:
        if file_format == "json":
            document = json.loads(text, object_pairs_hook=unique_keys)
        else:
            document = yaml.load(text, _Loader)  # noqa: S506 (a safe loader)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        msg = f"`{name}` is no valid {file_format.upper()}: {error}."
        raise AnnotationError(msg) from None
    try:
        checked = AnnotationFile.model_validate(
            document if isinstance(document, Mapping) else {"annotations": document}
        )
    except ValidationError as error:
        said = "; ".join(problem.said for problem in problems_of(error, AnnotationFile))
        msg = f"`{name}` is no annotations file: {said}; write a list under `annotations`."
        raise AnnotationError(msg) from None
    return checked.source, checked.annotations


def _csv_entries(text: str, name: str) -> tuple[None, list[Any], Places]:
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    columns = tuple((column or "").replace(".", "_") for column in reader.fieldnames or ())
    if len(set(columns)) != len(columns):
        msg = f"`{name}` has a column twice; the columns are {', '.join(_CSV_COLUMNS)}, each once at most."
        raise AnnotationError(msg)
    if unknown := sorted(set(columns) - set(_CSV_COLUMNS)):
        near = meant(unknown[0], _CSV_COLUMNS)
        msg = f"`{name}` has unknown columns {', '.join(unknown)}; the columns are {', '.join(_CSV_COLUMNS)}{near}."
        raise AnnotationError(msg)
    reader.fieldnames = list(columns)
    try:
        rows = [(_csv_entry(row), reader.line_num) for row in reader]
    except csv.Error as error:
        msg = f"`{name}` is no valid CSV, line {reader.line_num}: {error}."
        raise AnnotationError(msg) from None
    if not rows:
        msg = f"`{name}` has no entries; write a line of columns ({', '.join(_CSV_COLUMNS)}) and a line for each entry."
        raise AnnotationError(msg)
    return None, [entry for entry, _ in rows], RowPlaces([line for _, line in rows])


def _csv_entry(row: Mapping[str | None, Any]) -> dict[str, Any]:
    filled = {column: cell for column, cell in row.items() if cell}
    entry: dict[str, Any] = {str(k): v for k, v in filled.items() if not str(k).startswith("target_")}
    entry["target"] = {str(k).removeprefix("target_"): v for k, v in filled.items() if str(k).startswith("target_")}
    if EXPECTED_STEPS_KEY in entry:
        # what is no JSON is refused by the entry's own check, which reads JSON text of references itself
        with contextlib.suppress(ValueError, RecursionError):
            entry[EXPECTED_STEPS_KEY] = json.loads(entry[EXPECTED_STEPS_KEY])
    return entry


def _target_of(raw: Any) -> str:
    match raw:
        case {"target": {"type": kind, "id": ident}}:
            return f" ({kind} `{ident}`)"
        case _:
            return ""
