"""What a source redacts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from stepacc_core.errors import ConfigError
from stepacc_core.redaction.scan import compiled
from stepacc_core.shown import shown

KINDS = ("private_key", "jwt", "token", "secret", "card", "iban", "email", "phone")
"""What is found without any setting; where two overlap, the earlier one wins."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_NO_PATTERNS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class RedactionSettings:
    """What is redacted before it is stored.

    Args:
        enabled: whether anything is.
        kinds: kinds of secrets and personal data to look for, of `KINDS`.
        patterns: further kinds, as name -> regular expression in the syntax of RE2, which has no look-around and no
            back-references and never takes long; they come before the built-in kinds.
        allow: values that are left as they are, whole and regardless of case; `*` stands for any text and `?` for one
            character, as in `*@example.org`.

    Raises:
        ConfigError: a kind is unknown, a name is not allowed, a pattern cannot be used, or an allowed value is blank.
    """

    enabled: bool = True
    kinds: tuple[str, ...] = KINDS
    patterns: Mapping[str, str] = field(default_factory=lambda: _NO_PATTERNS)
    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        for kind in self.kinds:
            if kind not in KINDS:
                msg = f"redaction.kinds names {shown(kind)}; use {', '.join(KINDS)}."
                raise ConfigError(msg, "redaction.kinds")
        for name, pattern in self.patterns.items():
            _check_pattern(name, pattern)
        for value in self.allow:
            if not value.strip(" *?"):
                msg = f"redaction.allow holds {shown(value)}, which would allow everything or nothing; write a value."
                raise ConfigError(msg, "redaction.allow")


def _check_pattern(name: str, pattern: str) -> None:
    setting = "redaction.patterns"
    if not _NAME.fullmatch(name) or name in KINDS:
        msg = (
            f"redaction.patterns has the name {shown(name)}; use a lower-case letter, then up to 39 lower-case "
            f"letters, digits and underscores, and none of {', '.join(KINDS)}."
        )
        raise ConfigError(msg, setting)
    try:
        empty = compiled(pattern).search(b"") is not None
    except ValueError as error:
        msg = f"redaction.patterns.{name} is {shown(pattern)}, which RE2 refuses ({error}); write it in RE2's syntax."
        raise ConfigError(msg, setting) from None
    if empty:
        msg = f"redaction.patterns.{name} is {shown(pattern)}, which matches empty text; let it match one character."
        raise ConfigError(msg, setting)
