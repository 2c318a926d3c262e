"""Redacting single texts, numbers and keys."""

import re
from collections import Counter
from dataclasses import dataclass
from fnmatch import translate
from typing import Any

from stepacc_core.marks import MARK, is_mark, mark
from stepacc_core.redaction.assigned import Role, assigned_detectors, is_secret, is_token, role_of
from stepacc_core.redaction.detector import Detector, Place
from stepacc_core.redaction.personal import is_card, is_phone, personal_detectors
from stepacc_core.redaction.scan import compiled, encoded, union
from stepacc_core.redaction.settings import KINDS, RedactionSettings
from stepacc_core.redaction.structured import redacted_structure
from stepacc_core.redaction.tokens import token_detectors

_REMEMBERED = 20_000
"""Texts whose outcome is remembered; producers send the same history with each completion."""
_LONGEST_REMEMBERED = 4_000
_MOST_ROUNDS = 50
_LONGEST_NUMBER = 10**19
_ESCAPED = r"\\u00[2-7]"
"""Escapes by which JSON may hide what would be found; the text is then read as JSON."""
_SCHEME_AND_MARK = re.compile(rf"(?:(?:bearer|basic|token)\s+)?{MARK.pattern}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of a text, and the kinds of what was found in it."""

    text: str
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of an object after redaction, and what it says of its value."""

    outcome: _Outcome
    role: Role | None


class Engine:
    """Redacts texts, numbers and keys by settings and a key; remembers outcomes, and is safe for several threads.

    Args:
        settings: what to look for.
        key: of the hashes in the marks.
    """

    def __init__(self, settings: RedactionSettings, key: bytes) -> None:
        self._key = key
        self._kinds = frozenset(settings.kinds)
        self._always = bool(settings.patterns)  # these may have anchors, or look for what JSON writes in another way
        built_in = [*token_detectors(), *assigned_detectors(), *personal_detectors()]
        detectors = [
            *(_of_pattern(name, pattern) for name, pattern in settings.patterns.items()),
            *(each for kind in KINDS if kind in self._kinds for each in built_in if each.kind == kind),
        ]
        self._gated = [(compiled(each.gate), each) for each in detectors]
        self._any = compiled(union([_ESCAPED, *(each.gate for each in detectors)]))
        self._allowed = [re.compile(translate(value), re.IGNORECASE) for value in settings.allow]
        self._texts: dict[tuple[str, Role | None], _Outcome] = {}
        self._keys: dict[str, _Key] = {}

    def may_hold(self, text: str) -> bool:
        """Tell by one scan whether anything may be found in a text, or in several with line ends between them."""
        return self._always or self._any.search(encoded(text)) is not None

    def text(self, text: str, role: Role | None, tally: Counter[str] | None = None) -> str:
        """Redact a text, given what its key says of it."""
        if role is None and not self.may_hold(text):
            return text
        outcome = self._texts.get((text, role))
        if outcome is None:
            outcome = self._redacted(text, role)
            if len(text) <= _LONGEST_REMEMBERED:
                if len(self._texts) >= _REMEMBERED:
                    self._texts.clear()
                self._texts[text, role] = outcome
        if tally is not None:
            tally.update(outcome.found)
        return outcome.text

    def number(self, value: int, role: Role | None, tally: Counter[str] | None = None) -> int | str:
        """Redact a number that is a card number, or a secret or phone number by its key."""
        digits = str(value) if abs(value) < _LONGEST_NUMBER else ""
        kind = self._kind_of_number(digits, role)
        if kind is None or self._is_allowed(digits):
            return value
        if tally is not None:
            tally[kind] += 1
        return mark(kind, value, self._key)

    def key(self, name: str, tally: Counter[str] | None = None) -> str:
        """Redact the key of an object."""
        outcome = self._known_key(name).outcome
        if tally is not None:
            tally.update(outcome.found)
        return outcome.text

    def role(self, name: str) -> Role | None:
        """Return what a key says of its value."""
        return self._known_key(name).role

    def is_plain(self, name: str) -> bool:
        """Tell whether a key says nothing of its value, and stays as it is."""
        known = self._keys.get(name) or self._known_key(name)
        return known.role is None and not known.outcome.found

    def _known_key(self, name: str) -> _Key:
        known = self._keys.get(name)
        if known is None:
            outcome = self._redacted(name, None) if self.may_hold(name) else _Outcome(name, ())
            known = _Key(outcome, role_of(name))
            if len(name) <= _LONGEST_REMEMBERED:
                if len(self._keys) >= _REMEMBERED:
                    self._keys.clear()
                self._keys[name] = known
        return known

    def _kind_of_number(self, digits: str, role: Role | None) -> str | None:
        if is_card(digits) and "card" in self._kinds:
            return "card"
        if role == "secret" and digits and "secret" in self._kinds:
            return "secret"
        return "phone" if role == "phone" and is_phone(digits) and "phone" in self._kinds else None

    def _redacted(self, text: str, role: Role | None) -> _Outcome:
        try:
            text.encode()
        except UnicodeEncodeError:
            text = text.encode("utf-8", "replace").decode()
        if kind := self._kind_by_role(text, role):
            return _Outcome(mark(kind, text, self._key), (kind,))
        found: list[str] = []
        if role is None or not _SCHEME_AND_MARK.fullmatch(text):
            for _ in range(_MOST_ROUNDS):  # what was replaced may have kept something beside it from being found
                before, text = text, self._round(text, found)
                if text == before:
                    break
        return _Outcome(text, tuple(found))

    def _kind_by_role(self, text: str, role: Role | None) -> str | None:
        """Return as what a text is redacted as a whole, by what its key says, unless its form says it better."""
        fits = {"secret": is_secret, "token": is_token, "phone": is_phone}
        if role is None or role not in self._kinds or not fits[role](text) or self._is_allowed(text):
            return None
        if is_mark(text.strip()) or _SCHEME_AND_MARK.fullmatch(text):
            return None
        return None if _SCHEME_AND_MARK.fullmatch(self._round(text, [])) else role

    def _round(self, text: str, found: list[str]) -> str:
        """Redact a text once, and add the kinds of what was found."""
        tally: Counter[str] = Counter()

        def scalar(given: Any, key: str | None) -> Any:
            role = None if key is None else self.role(key)
            if isinstance(given, str):
                return self.text(given, role, tally)
            return self.number(given, role, tally) if isinstance(given, int) else given

        structure = redacted_structure(text, scalar, lambda name: self.key(name, tally))
        if structure is not None:
            found.extend(tally.elements())
            return structure
        pieces: list[str] = []
        done = 0
        for there in MARK.finditer(text):
            pieces += (self._piece(text[done : there.start()], found), there[0])
            done = there.end()
        return "".join((*pieces, self._piece(text[done:], found)))

    def _piece(self, text: str, found: list[str]) -> str:
        """Redact text without marks, once; of two places that overlap the one of the earlier kind counts."""
        places: list[tuple[Place, str]] = []
        searched = encoded(text)
        for gate, detector in self._gated if text else ():
            if gate.search(searched) is not None:
                for start, end in detector.find(text):
                    free = all(end <= other[0] or other[1] <= start for other, _ in places)
                    if free and not self._is_allowed(text[start:end]):
                        places.append(((start, end), detector.kind))
        pieces: list[str] = []
        done = 0
        for (start, end), kind in sorted(places):
            pieces += (text[done:start], mark(kind, text[start:end], self._key))
            found.append(kind)
            done = end
        return "".join((*pieces, text[done:]))

    def _is_allowed(self, text: str) -> bool:
        return any(allowed.fullmatch(text) for allowed in self._allowed)


def _of_pattern(name: str, pattern: str) -> Detector:
    own = compiled(pattern)
    return Detector(name, pattern, lambda text: (found.span() for found in own.finditer(text)))
