"""A convention that the user declares: where the fields of a span stand in spans that no built-in reader knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast, get_args

from pydantic import ConfigDict, with_config

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.conventions.completions import calls_in
from stepacc_core.conventions.fields import NOTHING, Fields
from stepacc_core.conventions.naming import real_id
from stepacc_core.conventions.values import identifier, lookup, parsed
from stepacc_core.errors import ConfigError
from stepacc_core.model import RawSpan, SpanKind

_KINDS = frozenset(get_args(SpanKind))
_NO_KINDS: Mapping[str, SpanKind] = {}


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True)
class DeclaredMapping:
    """Names of attributes, or dotted paths into JSON attributes, that hold the fields of a span.

    A declared mapping is tried before every built-in convention. It applies to spans that are named `span_name`
    (any, when None) and have the attribute `kind_attribute` (any, when None); one of the two must be given. The kind
    is `kind`, else what `kinds` makes of the attribute's value, else that value itself where it is a kind. Without a
    kind it decides nothing, and a field it does not find is left to the built-in conventions.
    """

    name: str
    span_name: str | None = None
    kind: SpanKind | None = None
    kind_attribute: str | None = None
    kinds: Mapping[str, SpanKind] = field(default_factory=lambda: _NO_KINDS)
    tool_name: str | None = None
    tool_arguments: str | None = None
    tool_call_id: str | None = None
    agent_name: str | None = None
    tool_calls: str | None = None
    output: str | None = None

    def __post_init__(self) -> None:
        """Refuse a mapping that would apply to every span, and kinds that do not exist.

        Raises:
            ConfigError: names the mapping, what was given and what is allowed.
        """
        if self.span_name is None and self.kind_attribute is None:
            msg = f"The mapping {self.name!r} would apply to every span; give it a span_name or a kind_attribute."
            raise ConfigError(msg)
        for kind in (self.kind, *self.kinds.values()):
            if kind is not None and kind not in _KINDS:
                msg = f"The mapping {self.name!r} names the kind {kind!r}; allowed are {', '.join(sorted(_KINDS))}."
                raise ConfigError(msg)

    def recognises(self, span: RawSpan) -> bool:
        """Tell whether the mapping applies to the span."""
        if self.span_name is not None and span.name != self.span_name:
            return False
        return self.kind_attribute is None or lookup(span.attributes, self.kind_attribute) is not None

    def read(self, span: RawSpan) -> Fields:
        """Read the declared attributes."""
        kind = self.kind or self._declared_kind(span)
        if kind is None:
            return NOTHING
        return Fields(
            kind=kind,
            tool_name=_text(span, self.tool_name),
            arguments=arguments_of(lookup(span.attributes, self.tool_arguments)) if self.tool_arguments else None,
            call_id=real_id(_text(span, self.tool_call_id)),
            agent_name=_text(span, self.agent_name),
            tool_calls=calls_in(lookup(span.attributes, self.tool_calls)) if self.tool_calls else (),
            output=parsed(lookup(span.attributes, self.output)) if self.output else None,
        )

    def _declared_kind(self, span: RawSpan) -> SpanKind | None:
        value = _text(span, self.kind_attribute)
        if value is None:
            return None
        upper = value.upper()
        return self.kinds.get(value) or (cast("SpanKind", upper) if upper in _KINDS else None)


def _text(span: RawSpan, path: str | None) -> str | None:
    return identifier(lookup(span.attributes, path)) if path else None
