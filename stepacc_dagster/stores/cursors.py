"""Cursors of changes: JSON text that a store wrote and will read again."""

import json
from typing import Any


def written(content: dict[str, Any]) -> str:
    """Return a cursor's text; equal content gives equal text."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def content(cursor: str | None, kind: str) -> dict[str, Any] | None:
    """Return what a cursor of a kind says; None where there is none, or another store made it."""
    try:
        found = json.loads(cursor or "")
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("by") == kind else None
