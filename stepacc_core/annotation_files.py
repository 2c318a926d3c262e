"""Reading annotation files: YAML, JSON and CSV (contract of `agent.step_accuracy`, section 11).

A file is taken whole or not at all: one bad entry refuses it, and the error lists every bad entry.
"""

import contextlib
import csv
import io
import json
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from stepacc_core.annotations import Annotation, AnnotationTarget, TargetType
from stepacc_core.errors import AnnotationError, ScoringError
from stepacc_core.model import PartitionType
from stepacc_core.shown import shown
from stepacc_core.trajectory import parse_trajectory

FileFormat = Literal["yaml", "json", "csv"]

_CSV_COLUMNS = ("source", "target_type", "target_id", "partition_type", "expected_steps", "author", "note")


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses a mapping with a key twice, of which YAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 (PyYAML's signature)
        """Build a mapping, each key of which stands once."""
        _unique([(key.value, None) for key, _ in node.value if isinstance(key, yaml.ScalarNode)])
        return super().construct_mapping(node, deep)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of pairs, each key of which stands once."""
    unique = dict(pairs)
    if len(unique) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        msg = f"the key `{twice}` stands twice in one mapping; keep one"
        raise ValueError(msg)
    return unique


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, str_min_length=1)


class _Target(_Strict):
    type: TargetType
    id: str


class _Entry(_Strict):
    target: _Target
    partition_type: PartitionType | None = None
    expected_steps: list[Any]
    source: str | None = None
    author: str | None = None
    note: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            parse_trajectory(self.expected_steps)
        except ScoringError as error:
            raise ValueError(error.message.rstrip(".")) from None
        own = None if self.target.type == "task" else self.target.type
        if own and self.partition_type not in (None, own):
            msg = (
                f"partition_type {self.partition_type!r} does not fit a target of type {own!r}; "
                f"write {own!r} or leave it out"
            )
            raise ValueError(msg)
        return self

    def annotation(self, source: str | None) -> Annotation:
        own: PartitionType = "session" if self.target.type == "session" else "trace"
        target = AnnotationTarget(self.target.type, self.target.id, self.partition_type or own)
        return Annotation(
            target=target,
            value=self.expected_steps,
            source=self.source or source,
            author=self.author,
            note=self.note,
        )


class _Document(_Strict):
    source: str | None = None
    annotations: list[Any] = Field(min_length=1)


def parse_annotations(text: str, file_format: FileFormat, *, name: str) -> tuple[Annotation, ...]:
    """Parse an annotations file.

    Args:
        text: the file's content.
        file_format: `yaml`, `json` or `csv`. In CSV the columns are source, target_type, target_id, partition_type,
            expected_steps (JSON text), author and note; empty cells are absent values.
        name: what to call the file in messages.

    Raises:
        AnnotationError: the file cannot be read, an entry is bad, or two entries have one target; every bad entry is
            named with its number and what is allowed.
    """
    source, entries = _csv_entries(text, name) if file_format == "csv" else _document_entries(text, file_format, name)
    annotations: list[Annotation] = []
    problems: list[str] = []
    seen: dict[tuple[Any, ...], int] = {}
    for number, raw in enumerate(entries, start=1):
        try:
            annotation = _Entry.model_validate(raw).annotation(source)
        except ValidationError as error:
            problems.append(f"entry {number}{_target_of(raw)}: {_sentence(error)}")
            continue
        first = seen.setdefault((annotation.source, annotation.target, annotation.key), number)
        if first != number:
            problems.append(f"entry {number}: {annotation.target} was annotated by entry {first} already; keep one")
        annotations.append(annotation)
    if problems:
        msg = f"`{name}` is not taken, none of its entries: " + "; ".join(problems) + "."
        raise AnnotationError(msg)
    return tuple(annotations)


def _document_entries(text: str, file_format: FileFormat, name: str) -> tuple[str | None, list[Any]]:
    try:
        document = json.loads(text, object_pairs_hook=_unique) if file_format == "json" else yaml.load(text, _Loader)  # noqa: S506 (a safe loader)
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        msg = f"`{name}` is no valid {file_format.upper()}: {error}."
        raise AnnotationError(msg) from None
    try:
        checked = _Document.model_validate(document if isinstance(document, Mapping) else {"annotations": document})
    except ValidationError as error:
        msg = f"`{name}` is no annotations file: {_sentence(error)}; write a list under `annotations`."
        raise AnnotationError(msg) from None
    return checked.source, checked.annotations


def _csv_entries(text: str, name: str) -> tuple[None, list[Any]]:
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), strict=True)
    columns = tuple((column or "").replace(".", "_") for column in reader.fieldnames or ())
    if len(set(columns)) != len(columns):
        msg = f"`{name}` has a column twice; the columns are {', '.join(_CSV_COLUMNS)}, each once at most."
        raise AnnotationError(msg)
    if unknown := sorted(set(columns) - set(_CSV_COLUMNS)):
        msg = f"`{name}` has unknown columns {', '.join(unknown)}; the columns are {', '.join(_CSV_COLUMNS)}."
        raise AnnotationError(msg)
    reader.fieldnames = list(columns)
    try:
        entries = [_csv_entry(row) for row in reader]
    except csv.Error as error:
        msg = f"`{name}` is no valid CSV, line {reader.line_num}: {error}."
        raise AnnotationError(msg) from None
    if not entries:
        msg = f"`{name}` has no entries; write a line of columns ({', '.join(_CSV_COLUMNS)}) and a line for each entry."
        raise AnnotationError(msg)
    return None, entries


def _csv_entry(row: Mapping[str | None, Any]) -> dict[str, Any]:
    filled = {column: cell for column, cell in row.items() if cell}
    entry: dict[str, Any] = {str(k): v for k, v in filled.items() if not str(k).startswith("target_")}
    entry["target"] = {str(k).removeprefix("target_"): v for k, v in filled.items() if str(k).startswith("target_")}
    if "expected_steps" in entry:
        with contextlib.suppress(
            ValueError, RecursionError
        ):  # text that is no JSON is refused by the entry's own check
            entry["expected_steps"] = json.loads(entry["expected_steps"])
    return entry


def _target_of(raw: Any) -> str:
    match raw:
        case {"target": {"type": kind, "id": ident}}:
            return f" ({kind} `{ident}`)"
        case _:
            return ""


def _sentence(error: ValidationError) -> str:
    return ", and ".join(_problems(error))


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        field = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        given = "" if problem["type"] in ("value_error", "missing") else f", given {shown(problem['input'])}"
        yield (f"`{field}`: " if field else "") + message + given
