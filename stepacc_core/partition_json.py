"""JSON form of a canonical partition (contract of `agent.step_accuracy`, section 9)."""

import codecs
import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from stepacc_core.conventions.values import decode
from stepacc_core.errors import PartitionError
from stepacc_core.model import CanonicalPartition
from stepacc_core.shown import shown

_ADAPTER = TypeAdapter(CanonicalPartition)
_NOT_FINITE = re.compile(r"NaN|Infinity|\d[eE]\+?\d{3}")
"""What stands in text with a number that is not finite, and in little else."""


def load_partition(document: str | bytes | Mapping[str, Any]) -> CanonicalPartition:
    """Load one partition from JSON text, which may begin with a byte order mark, or from a parsed JSON object.

    Numbers that JSON cannot hold (`NaN`, infinities) become text, as everywhere else.

    Raises:
        PartitionError: the document is no JSON object, or a field is unknown, missing or of another type; the message
            names partition, span and field.
    """
    text = _finite(_without_mark(document) if isinstance(document, str | bytes) else json.dumps(document))
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        raise PartitionError(_sentence(text, error.errors()[0])) from None


def dump_partition(partition: CanonicalPartition) -> str:
    """Dump a partition to one line of JSON; loading it again gives an equal partition."""
    return _ADAPTER.dump_json(partition).decode()


def _finite(text: str | bytes) -> str | bytes:
    """Return the text with such numbers as text, where it may hold one; they are no valid JSON to put out again."""
    written = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if not _NOT_FINITE.search(written):
        return text
    try:
        return json.dumps(decode(written))
    except ValueError:
        return text


def _without_mark(text: str | bytes) -> str | bytes:
    return text.removeprefix(codecs.BOM_UTF8) if isinstance(text, bytes) else text.removeprefix("\ufeff")


def _sentence(text: str | bytes, problem: ErrorDetails) -> str:
    path = problem["loc"]
    if problem["type"] == "json_invalid":
        return f"A canonical partition is one JSON object, and this text is no JSON: {problem['msg']}."
    document = json.loads(text)
    where = f"Partition {_id(document, 'partition_id')}"
    match path:
        case ("spans", int(index), *rest):
            where += f", span {_id(document['spans'][index], 'span_id')} (number {index})"
            path = tuple(rest)
        case _:
            pass
    field = ".".join(str(part) for part in path) or "(the whole value)"
    return f"{where}, field `{field}`: {problem['msg']}; given {shown(problem['input'])}."


def _id(document: Any, key: str) -> str:
    value = document.get(key) if isinstance(document, Mapping) else None
    return f"`{value}`" if value else f"without a {key}"
