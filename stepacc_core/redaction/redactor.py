"""The redactor: spans, JSON values and texts in, the same with marks in the place of what was found out."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stepacc_core.errors import AnnotationError
from stepacc_core.log_records import CARRIES, carrier
from stepacc_core.model import RawEvent, RawSpan
from stepacc_core.redaction.engine import Engine
from stepacc_core.redaction.personal import is_card
from stepacc_core.redaction.settings import RedactionSettings

_DEEPEST = 200
"""Levels of nesting that are looked through; storage keeps no more."""
_TOO_DEEP = f"nested deeper than {_DEEPEST} levels"
_CARDS = (10**11, 10**19)
"""Between these are numbers of as many digits as a card has."""
_COMPARATORS = frozenset({"equals", "one_of", "text", "contains", "id", "any_of", "all_of", "not"})
"""Keys of the comparators of a reference, whose values are those of the argument they stand under."""
_NO_HASH = frozenset({"regex", "number"})
"""Comparators that no hash can stand for: a pattern meets no mark, and a mark is no number."""


class Redactor:
    """Redacts by the settings of a source and the key of a database.

    Redacting twice changes nothing: marks are left alone, and a text is gone over until nothing is found any more. Safe
    for use by several threads at once.

    Args:
        settings: what to look for.
        key: of the hashes in the marks.
    """

    def __init__(self, settings: RedactionSettings, key: bytes) -> None:
        self._engine = Engine(settings, key)

    def span(self, span: RawSpan, tally: Counter[str] | None = None) -> RawSpan:
        """Redact what a span says: attributes, events, resource and the message of its status.

        Ids, the names of span, events and scope, and times stay. A span that carries a log record gets the id of what
        is left of it, since its id is made from its content.

        Args:
            span: the span.
            tally: to which what was found is added, by kind.
        """
        if not self._may_hold(span):
            return span
        redacted = replace(
            span,
            attributes=self.value(span.attributes, tally),
            events=tuple(self.event(event, tally) for event in span.events),
            resource=self.value(span.resource, tally),
            status_message=self.text(span.status_message, tally),
        )
        if redacted != span and CARRIES in span.attributes and len(span.events) == 1 and span.parent_span_id:
            return carrier(((span.trace_id, span.parent_span_id), redacted.events[0]))
        return redacted

    def event(self, event: RawEvent, tally: Counter[str] | None = None) -> RawEvent:
        """Redact the attributes of an event."""
        return replace(event, attributes=self.value(event.attributes, tally))

    def value(self, value: Any, tally: Counter[str] | None = None) -> Any:
        """Redact a JSON value: its texts, its keys, and numbers that are card numbers."""
        return self._value(value, None, tally, 0)

    def text(self, text: str, tally: Counter[str] | None = None) -> str:
        """Redact a text; one that is JSON is redacted value by value."""
        return self._engine.text(text, None, tally)

    def expected(self, value: Any, tally: Counter[str] | None = None) -> Any:
        """Redact what is expected of arguments and answers, so that it equals what is stored of equal values.

        Comparators (`equals`, `one_of`, ...) stand for the argument that they are about.

        Raises:
            AnnotationError: a `regex` or `number` holds a secret or personal data, which no hash could stand for.
        """
        return self._expected(value, None, tally)

    def _value(self, value: Any, key: str | None, tally: Counter[str] | None, depth: int) -> Any:
        if isinstance(value, str):
            return self._engine.text(value, None if key is None else self._engine.role(key), tally)
        if isinstance(value, Mapping | list | tuple) and depth >= _DEEPEST:
            return _TOO_DEEP
        if isinstance(value, Mapping):
            return {
                self._engine.key(str(name), tally): self._value(item, str(name), tally, depth + 1)
                for name, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._value(item, key, tally, depth + 1) for item in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return self._engine.number(value, None if key is None else self._engine.role(key), tally)
        return value

    def _expected(self, value: Any, key: str | None, tally: Counter[str] | None, depth: int = 0) -> Any:
        if isinstance(value, Mapping | list | tuple) and depth >= _DEEPEST:
            return _TOO_DEEP
        if isinstance(value, list | tuple):
            return [self._expected(item, key, tally, depth + 1) for item in value]
        if not isinstance(value, Mapping):
            return self._value(value, key, tally, 0)
        kept: dict[str, Any] = {}
        for name, item in value.items():
            if name in _NO_HASH and isinstance(item, str | int):
                self._refuse(str(name), item)
            about = key if name in _COMPARATORS and key is not None else str(name)
            kept[self._engine.key(str(name), tally)] = self._expected(item, about, tally, depth + 1)
        return kept

    def _refuse(self, name: str, item: str | int) -> None:
        found: Counter[str] = Counter()
        self.value(re.sub(r"\\(.)", r"\1", item) if isinstance(item, str) else item, found)
        if found:
            msg = (
                f"A `{name}` holds something of the kind {', '.join(sorted(found))}; values of traces are redacted "
                "before they are compared, so it would never hold: write the value as it is, without a comparator, or "
                "allow it under redaction.allow."
            )
            raise AnnotationError(msg)

    def _may_hold(self, span: RawSpan) -> bool:
        """Tell whether anything may be found, by one scan over all texts of a span."""
        texts = [span.status_message]
        holders = [span.attributes, span.resource, *(event.attributes for event in span.events)]
        return any(self._gather(holder, texts, 0) for holder in holders) or self._engine.may_hold("\n".join(texts))

    def _gather(self, value: Any, texts: list[str], depth: int) -> bool:
        """Collect the texts of a value; True where something may be found without looking at them."""
        if depth > _DEEPEST:
            return True
        if isinstance(value, str):
            texts.append(value)
            return False
        if isinstance(value, Mapping):
            return any(
                not self._engine.is_plain(str(name)) or self._gather(item, texts, depth + 1)
                for name, item in value.items()
            )
        if isinstance(value, list | tuple):
            return any(self._gather(item, texts, depth + 1) for item in value)
        return isinstance(value, int) and _CARDS[0] < value < _CARDS[1] and is_card(str(value))
