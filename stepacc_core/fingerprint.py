"""Content hashes, so that the same evaluation is recognised and never stored twice."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from stepacc_core.model import Step


def fingerprint(value: Any) -> str:
    """Return 32 hex digits that depend only on the JSON content of `value`, not on the order of object keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def steps_fingerprint(steps: Iterable[Step]) -> str:
    """Return the fingerprint of what an alignment depends on: each step's name and kind, in order."""
    return fingerprint([[step.name, step.kind] for step in steps])
