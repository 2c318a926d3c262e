"""Annotations: append-only revisions of what people expect."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, get_args

import sqlalchemy as sa

from stepacc_core.annotations import EXPECTED_STEPS_KEY, Annotation, TargetType
from stepacc_core.errors import AnnotationError
from stepacc_core.fingerprint import fingerprint
from stepacc_core.model import PartitionType
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.copy import ColumnType, copy_in, create_staging
from stepacc_dagster.storage.locks import lock
from stepacc_dagster.storage.tables import annotations
from stepacc_dagster.storage.tombstones import erased_targets

_TARGET: tuple[tuple[str, ColumnType], ...] = (
    ("source", "text"),
    ("target_type", "text"),
    ("target_id", "text"),
    ("partition_type", "text"),
    ("key", "text"),
)
_Target = tuple[str, str, str, str, str]
_NEWEST = sa.text("""
    SELECT source, target_type, target_id, partition_type, key, last.id, last.revision, last.value_hash
    FROM staged_targets target CROSS JOIN LATERAL (
        SELECT id, revision, value_hash FROM stepacc.annotations old
        WHERE old.source = target.source AND old.target_type = target.target_type AND old.target_id = target.target_id
          AND old.partition_type = target.partition_type AND old.key = target.key
        ORDER BY old.revision DESC LIMIT 1
    ) last
""")
_INSERTED = 1_000
"""Rows per insert."""


@dataclass(frozen=True, slots=True)
class AnnotationEntry:
    """Something to say of a target.

    `value` is kept as given, whether or not it is valid under its key; JSON text of a list or object is that list or
    object. An annotation of a trace or session is used for partitions of that type only, one of a task for
    `partition_type`.

    Raises:
        AnnotationError: a type is unknown or does not fit the target, the target has no id, or there is no value.
    """

    source: str
    target_type: TargetType
    target_id: str
    value: Any
    partition_type: PartitionType = "trace"
    key: str = EXPECTED_STEPS_KEY
    author: str = ""
    note: str = ""
    origin: str = ""

    def __post_init__(self) -> None:
        """Refuse what no partition would ever be scored against."""
        _check_target(self.target_type, self.target_id, self.partition_type)
        if self.value is None:
            msg = (
                f"The annotation of {self.target_type} {self.target_id!r} has no value; to take one back, withdraw it."
            )
            raise AnnotationError(msg)

    @classmethod
    def of(cls, annotation: Annotation, *, source: str, author: str = "", origin: str = "") -> Self:
        """Return the entry of an annotation as a file has it.

        Args:
            annotation: what the file says; its own source and author come first.
            source: the source of an annotation that names none.
            author: the author of one that names none.
            origin: where it comes from, such as the file's name.
        """
        return cls(
            source=annotation.source or source,
            target_type=annotation.target.type,
            target_id=annotation.target.id,
            value=annotation.value,
            partition_type=annotation.target.partition_type,
            key=annotation.key,
            author=annotation.author or author,
            note=annotation.note or "",
            origin=origin,
        )


@dataclass(frozen=True, slots=True)
class Added:
    """The revision that holds what an entry says; `new` is false when the newest one said so already."""

    id: int
    revision: int
    new: bool


@dataclass(frozen=True, slots=True)
class StoredAnnotation:
    """One revision as stored; `value` and `value_hash` are None for a withdrawal, `value` also once it was erased."""

    id: int
    source: str
    target_type: TargetType
    target_id: str
    partition_type: PartitionType
    key: str
    revision: int
    value: Any
    value_hash: str | None
    withdrawn: bool
    author: str
    note: str
    origin: str
    created_at: datetime
    erased_at: datetime | None


def add_annotations(conn: sa.Connection, entries: Iterable[AnnotationEntry]) -> list[Added]:
    """Add a revision for each entry that says something new of its target.

    A value equal to the one in force adds nothing; after a withdrawal any value is new. Entries for one target are
    revisions in the order given. Writers of one source wait for each other, until the caller's transaction ends.

    Returns:
        For each entry, in order, the revision that holds its value.

    Raises:
        AnnotationError: an entry is about a trace or session that was erased.
    """
    given = [(_target_of(entry), _stored_value(entry.value), entry) for entry in entries]
    newest = _lock_and_find(conn, {target for target, _, _ in given})
    _refuse_erased(conn, [target for target, _, _ in given])
    rows: list[dict[str, Any]] = []
    revisions: list[tuple[_Target, int, bool]] = []
    for target, value, entry in given:
        digest = fingerprint(value)
        _, revision, last_digest = newest.get(target, (0, 0, None))
        is_new = digest != last_digest
        if is_new:
            revision += 1
            newest[target] = (0, revision, digest)
            rows.append(_row(target, revision, entry) | {"value": value, "value_hash": digest})
        revisions.append((target, revision, is_new))
    ids = {(target, revision): ident for target, (ident, revision, _) in newest.items() if ident} | _insert(conn, rows)
    return [Added(ids[target, revision], revision, is_new) for target, revision, is_new in revisions]


def value_hash(entry: AnnotationEntry) -> str:
    """Return the hash of an entry's value, as the column `value_hash` has it."""
    return fingerprint(_stored_value(entry.value))


def withdraw(  # noqa: PLR0913 (a target has four parts)
    conn: sa.Connection,
    source: str,
    target_type: TargetType,
    target_id: str,
    *,
    partition_type: PartitionType = "trace",
    key: str = EXPECTED_STEPS_KEY,
    author: str = "",
    note: str = "",
    origin: str = "",
) -> Added | None:
    """Take back what is in force of a target, by a revision without a value; the revisions before it stay.

    Returns:
        The new revision, or None where nothing was in force.

    Raises:
        AnnotationError: a type is unknown or does not fit the target.
    """
    _check_target(target_type, target_id, partition_type)
    entry = AnnotationEntry(source, target_type, target_id, "", partition_type, key, author, note, origin)
    target = _target_of(entry)
    _, revision, digest = _lock_and_find(conn, {target}).get(target, (0, 0, None))
    if digest is None:
        return None
    [ident] = _insert(conn, [_row(target, revision + 1, entry) | {"value": None, "value_hash": None}]).values()
    return Added(ident, revision + 1, new=True)


def list_annotations(
    conn: sa.Connection,
    source: str,
    *,
    target_type: TargetType | None = None,
    target_id: str | None = None,
    history: bool = False,
) -> list[StoredAnnotation]:
    """Return the annotations of a source in force, by target; with `history`, all their revisions, oldest first."""
    columns = annotations.c
    key = ("target_type", "target_id", "partition_type", "key")
    query = (
        sa.select(*(columns[name] for name in StoredAnnotation.__slots__))
        .where(columns.source == encode.text(source))
        .order_by(*(columns[name] for name in key), columns.revision)
    )
    if target_type is not None:
        query = query.where(columns.target_type == target_type)
    if target_id is not None:
        query = query.where(columns.target_id == encode.stored_id(target_id))
    if not history:
        newer = annotations.alias("newer")
        same = (newer.c[name] == columns[name] for name in ("source", *key))
        query = query.where(~columns.withdrawn, ~sa.exists().where(*same, newer.c.revision > columns.revision))
    return [StoredAnnotation(**row) for row in conn.execute(query).mappings()]


def _lock_and_find(conn: sa.Connection, targets: set[_Target]) -> dict[_Target, tuple[int, int, str | None]]:
    """Lock the sources and return id, revision and value hash of the newest revision of each target that has one."""
    for source in sorted({target[0] for target in targets}):
        lock(conn, "annotations", source)
    create_staging(conn, "staged_targets", _TARGET)
    copy_in(conn, "staged_targets", _TARGET, targets)
    return {
        (row.source, row.target_type, row.target_id, row.partition_type, row.key): (
            row.id,
            row.revision,
            row.value_hash,
        )
        for row in conn.execute(_NEWEST)
    }


def _refuse_erased(conn: sa.Connection, targets: Sequence[_Target]) -> None:
    for source in sorted({target[0] for target in targets}):
        own = [(kind, ident) for of, kind, ident, _, _ in targets if of == source]
        for kind, ident in sorted(erased_targets(conn, source, own)):
            msg = (
                f"The {kind} {ident!r} of source `{source}` was erased, and nothing is stored about it again; take it "
                "out of the annotations."
            )
            raise AnnotationError(msg)


def _insert(conn: sa.Connection, rows: Sequence[dict[str, Any]]) -> dict[tuple[_Target, int], int]:
    ids: dict[tuple[_Target, int], int] = {}
    statement = sa.insert(annotations).returning(annotations)
    for start in range(0, len(rows), _INSERTED):
        for row in conn.execute(statement, rows[start : start + _INSERTED]):
            target = (row.source, row.target_type, row.target_id, row.partition_type, row.key)
            ids[target, row.revision] = row.id
    return ids


def _row(target: _Target, revision: int, entry: AnnotationEntry) -> dict[str, Any]:
    return {name: value for (name, _), value in zip(_TARGET, target, strict=True)} | {
        "revision": revision,
        "author": encode.text(entry.author),
        "note": encode.text(entry.note),
        "origin": encode.text(entry.origin),
    }


def _target_of(entry: AnnotationEntry) -> _Target:
    source, key = encode.text(entry.source), encode.text(entry.key)
    return source, entry.target_type, encode.stored_id(entry.target_id), entry.partition_type, key


def _stored_value(value: Any) -> Any:
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except (ValueError, RecursionError):
            parsed = None
        value = parsed if isinstance(parsed, list | dict) else value
    return json.loads(encode.json_bytes(value))


def _check_target(target_type: str, target_id: str, partition_type: str) -> None:
    for name, given, allowed in (
        ("target_type", target_type, get_args(TargetType)),
        ("partition_type", partition_type, get_args(PartitionType)),
    ):
        if given not in allowed:
            msg = f"An annotation has the {name} {given!r}; write {' or '.join(allowed)}."
            raise AnnotationError(msg)
    if not target_id:
        msg = f"An annotation of a {target_type} has no id; say which {target_type} it is about."
        raise AnnotationError(msg)
    if target_type not in ("task", partition_type):
        msg = (
            f"The annotation of {target_type} {target_id!r} has the partition_type {partition_type!r}, for which it "
            f"would never be used; write partition_type {target_type}."
        )
        raise AnnotationError(msg)
