"""Redaction: secrets and personal data are replaced by marks before anything is stored.

A mark, `[redacted:<kind>:<hex>]`, holds a keyed hash of what it replaces, so that equal values stay comparable, and
what they were cannot be guessed without the key.
"""

from stepacc_core.marks import holds_mark
from stepacc_core.redaction.redactor import Redactor
from stepacc_core.redaction.settings import KINDS, RedactionSettings

__all__ = ["KINDS", "RedactionSettings", "Redactor", "holds_mark"]
