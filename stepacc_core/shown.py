"""Values in messages: short whatever they are, since a refused value may be huge, deep or full of itself.

Messages go where nothing else of a trace goes, such as logs: so they show no secrets and no personal data either.
"""

import reprlib
from typing import Any

_LONGEST = 120
"""Characters of a value that a message shows."""
_LOOKED_AT = 2_000
"""Characters of a text that are looked through for secrets; of the rest nothing is shown."""


class _Repr(reprlib.Repr):
    """Conceals before it cuts: half a secret is not to be told any more."""

    def repr_str(self, x: str, level: int) -> str:
        return super().repr_str(concealed(x[:_LOOKED_AT]), level)

    def repr_bytes(self, x: bytes, level: int) -> str:
        text = concealed(x[:_LOOKED_AT].decode("utf-8", "backslashreplace"))
        return super().repr_instance(text.encode("utf-8", "replace"), level)


_REPR = _Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = _LONGEST
_REPR.maxlevel = 4


def shown(value: Any) -> str:
    """Return a value as Python writes it, cut to what a sentence can hold."""
    text = _REPR.repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def begun(text: str, longest: int) -> str:
    """Return the beginning of a text from outside, without secrets and personal data.

    Args:
        text: of any length.
        longest: characters to show; what is cut off leaves an ellipsis.
    """
    safe = concealed(text[:_LOOKED_AT])
    return safe if len(safe) <= longest and len(text) <= _LOOKED_AT else f"{safe[:longest]}…"


def concealed(text: str) -> str:
    """Return a text with `[redacted:<kind>]` in the place of secrets and personal data."""
    from stepacc_core.redaction.messages import concealed  # noqa: PLC0415 (only messages pay for the libraries)

    return concealed(text)
