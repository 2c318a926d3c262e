"""Content hashes, so that the same evaluation is recognised and never stored twice."""

import hashlib
import json
from typing import Any


def fingerprint(value: Any) -> str:
    """Return 32 hex digits that depend only on the JSON content of `value`, not on the order of object keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
