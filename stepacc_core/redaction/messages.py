"""Texts that are quoted in messages: without what would be redacted, and without a hash, since nobody compares them."""

import secrets
from functools import lru_cache

from stepacc_core.marks import MARK
from stepacc_core.redaction.engine import Engine
from stepacc_core.redaction.settings import RedactionSettings

_LIBRARIES = {"detect_secrets", "phonenumbers", "re2", "stdnum"}


def concealed(text: str) -> str:
    """Return a text with `[redacted:<kind>]` in the place of secrets and personal data.

    Where only the base package is installed the text stays as it is: nothing is stored there, and its commands speak to
    whoever has the files.
    """
    engine = _engine()
    return text if engine is None else MARK.sub(r"[redacted:\1]", engine.text(text, None))


@lru_cache(maxsize=1)
def _engine() -> Engine | None:
    try:
        return Engine(RedactionSettings(), secrets.token_bytes())
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LIBRARIES:
            raise
        return None
