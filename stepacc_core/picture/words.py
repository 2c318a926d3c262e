"""How the faces of a picture mark and count entries: one place for the signs and the words."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stepacc_core.picture.characters import printable
from stepacc_core.picture.rows import OMITTED, Fold, Row, Shown

NOTHING = "·"
"""Stands where nothing was expected, or nothing observed."""

_MARKS = {"match": "=", "substitute": "~", "insert": "+", "delete": "-", OMITTED: "…"}
_WORDS = {"match": "", "substitute": "other", "insert": "extra", "delete": "missing"}
_COUNTED = {"substitute": "other", "insert": "extra", "delete": "missing"}
_FOLDED = {
    "match": "match",
    "substitute": "are other steps",
    "insert": "are extra",
    "delete": "are missing",
    OMITTED: "not shown",
}


def mark(shown: Shown) -> str:
    """Return the sign of an entry's operation."""
    return _MARKS.get(shown.op, "?")


def word(row: Row) -> str:
    """Return what an entry says beside its sign; nothing for a plain match."""
    if row.notable:
        attempts = [f"{row.attempts} failed before"] if row.attempts else []
        return ", ".join([*(["arguments"] if row.differences else []), *attempts])
    if row.optional and row.op == "delete":
        return "not taken"
    return _WORDS.get(row.op, row.op)


def kind(shown: Shown) -> str:
    """Return the kind that decides an entry's colour: its operation, or `differs` for a match in name alone."""
    if isinstance(shown, Row) and (shown.differences or (shown.optional and shown.op == "delete")):
        return "differs" if shown.differences else "match"
    return shown.op if shown.op in _WORDS else "other"


def fold_text(fold: Fold) -> str:
    """Return what a fold says."""
    return f"{fold.count} more {_FOLDED.get(fold.op, fold.op)}"


def count_text(metadata: Mapping[str, Any], rows: Iterable[Row]) -> str:
    """Return the line that counts: how many expected steps match, what else there is, and the distance."""
    rows = list(rows)
    matched = _number(metadata, "correct_steps", sum(row.op == "match" for row in rows))
    total = _number(metadata, "total_steps", sum(row.expected is not None and not row.optional for row in rows))
    parts = [f"{matched} of {total} expected steps match" + (" by position" if "extra_steps" in metadata else "")]
    for op, text in _COUNTED.items():
        count = sum(row.op == op and not (row.optional and op == "delete") for row in rows)
        parts += [f"{count} {text}"] if count else []
    differing = sum(bool(row.differences) for row in rows)
    parts += [f"{differing} with other arguments"] if differing else []
    distance = _number(metadata, "edit_distance", None)
    parts += [] if distance is None else [f"edit distance {distance}"]
    return "; ".join([", ".join(parts), *_judgement(metadata)])


def _judgement(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield what `agent.trajectory_match` says beside the path."""
    forbidden = metadata.get("forbidden")
    if isinstance(forbidden, list) and forbidden:
        sequences = [" then ".join(map(str, seen)) if isinstance(seen, list) else str(seen) for seen in forbidden]
        yield f"forbidden: {printable(', '.join(sequences))}"
    match metadata:
        case {"verdict": str(verdict), "reference": {"name": str(name)}}:
            yield f"verdict {printable(verdict)} by `{printable(name)}`"


def _number(metadata: Mapping[str, Any], name: str, otherwise: int | None) -> int | None:
    """Return a count that the metadata have, which may be those of any metric."""
    value = metadata.get(name)
    return value if isinstance(value, int) else otherwise
