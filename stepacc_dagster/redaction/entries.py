"""Annotations: what is expected is redacted as what is stored of traces, so that equal values stay equal."""

import json
from dataclasses import replace
from typing import Any

from stepacc_core.errors import AnnotationError
from stepacc_core.redaction import Redactor
from stepacc_dagster.storage.annotations import AnnotationEntry


def redacted_entry(entry: AnnotationEntry, redactor: Redactor | None) -> AnnotationEntry:
    """Return an entry as it may be stored: value, note and the id of a session or task are redacted.

    Such an id is redacted as in the attributes of spans, so that the entry still meets its target. The author stays:
    whoever annotates says so on purpose.

    Args:
        entry: the entry.
        redactor: of its source; None where values are stored as they are.

    Raises:
        AnnotationError: a `regex` or `number` holds a secret or personal data; the message names the target.
    """
    if redactor is None:
        return entry
    try:
        value = _redacted(entry.value, redactor)
    except AnnotationError as error:
        ident = redactor.text(entry.target_id)
        msg = f"The annotation of {entry.target_type} `{ident}` cannot be stored. {error.message}"
        raise AnnotationError(msg) from None
    target_id = entry.target_id if entry.target_type == "trace" else redactor.text(entry.target_id)
    return replace(entry, value=value, note=redactor.text(entry.note), target_id=target_id)


def _redacted(value: Any, redactor: Redactor) -> Any:
    if not isinstance(value, str):
        return redactor.expected(value)
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return redactor.text(value)
    if not isinstance(parsed, list | dict):
        return redactor.text(value)
    redacted = redactor.expected(parsed)
    return value if redacted == parsed else json.dumps(redacted, ensure_ascii=False)
