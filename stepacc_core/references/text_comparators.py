"""Comparators of text: days, instants, words and patterns (contract section 3)."""

import datetime as dt
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import AfterValidator

from stepacc_core.marks import holds_mark
from stepacc_core.references.equality import canonical
from stepacc_core.references.iso import check_iso, day_of, instant_of, read_iso
from stepacc_core.references.model import Verdict
from stepacc_core.references.patterns import check_pattern, found_in
from stepacc_core.references.verdicts import REDACTED, TOO_SLOW, quoted, told
from stepacc_core.references.written import AS_WRITTEN, Written


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Day(Written):
    """A day, or a time on that day as written in its own zone; where it names a time, that instant."""

    date: Annotated[str, AfterValidator(check_iso)]

    def words(self) -> str:
        """Say it in words."""
        return f"is the {'instant' if isinstance(read_iso(self.date), dt.datetime) else 'day'} {self.date}"

    def judge(self, value: Any) -> Verdict:
        """Compare with text in any form of ISO 8601."""
        wanted = read_iso(self.date)
        if wanted is None or isinstance(wanted, dt.datetime):
            return Instant(self.date).judge(value)
        return _judge_text(value, lambda text: (found := read_iso(text)) is not None and day_of(found) == wanted)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Instant(Written):
    """An instant, whatever zone it is written in; without a zone it is in UTC, and a day is its beginning."""

    datetime: Annotated[str, AfterValidator(check_iso)]

    def words(self) -> str:
        """Say it in words."""
        return f"is the instant {self.datetime}"

    def judge(self, value: Any) -> Verdict:
        """Compare with text in any form of ISO 8601."""
        wanted = read_iso(self.datetime)
        if wanted is None:
            return told(value == self.datetime)
        instant = instant_of(wanted)
        return _judge_text(value, lambda text: (found := read_iso(text)) is not None and instant_of(found) == instant)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Text(Written):
    """Text, whatever its case and blanks."""

    text: str

    def words(self) -> str:
        """Say it in words."""
        return f"reads {quoted(self.text)} (whatever case and blanks)"

    def judge(self, value: Any) -> Verdict:
        """Compare with text."""
        return _judge_text(value, lambda text: _folded(text) == _folded(self.text))


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Contains(Written):
    """Text that holds a text, or a list that holds an equal value."""

    contains: Any = field(hash=False)

    def words(self) -> str:
        """Say it in words."""
        return f"contains {quoted(self.contains)}"

    def judge(self, value: Any) -> Verdict:
        """Look into text or a list."""
        if isinstance(value, list | tuple):
            wanted = canonical(self.contains)
            return REDACTED if holds_mark(value) else told(any(canonical(item) == wanted for item in value))
        return _judge_text(value, lambda text: isinstance(self.contains, str) and self.contains in text)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Regex(Written):
    """Text in which a pattern is found."""

    regex: Annotated[str, AfterValidator(check_pattern)]

    def words(self) -> str:
        """Say it in words."""
        return f"matches the pattern {self.regex}"

    def judge(self, value: Any) -> Verdict:
        """Search in text."""
        return _judge_text(value, lambda text: found_in(self.regex, text))


def _judge_text(value: Any, holds: Callable[[str], bool | None]) -> Verdict:
    if holds_mark(value):
        return REDACTED
    found = holds(value) if isinstance(value, str) else False
    return TOO_SLOW if found is None else told(found)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())
