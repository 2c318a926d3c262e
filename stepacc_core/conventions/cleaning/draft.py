"""What cleaning passes work on: the spans of one trace, canonical and raw, and what was assumed so far."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stepacc_core.model import CanonicalSpan, Gap, RawSpan

Pass = Callable[["Draft"], "Draft"]
"""A cleaning pass: it returns a draft with some spans changed, and a gap for each thing it assumed."""

LATEST = 2**63


@dataclass(frozen=True, slots=True)
class Draft:
    """The spans of one trace, each once, by id.

    Passes change spans, and may add some, also between a span and its parent, but remove none, so that the tree stays
    whole: a span that is no step of its own becomes a CHAIN. `order` holds the ids, parents before children.
    """

    spans: Mapping[str, CanonicalSpan]
    raw: Mapping[str, RawSpan]
    gaps: tuple[Gap, ...] = ()
    order: tuple[str, ...] = field(default=())
    sorted_spans: dict[tuple[str, ...], list[CanonicalSpan]] = field(default_factory=dict, compare=False, repr=False)
    """What `of_kind` returned before: most passes ask for the same and change nothing."""

    def changed(self, changes: Iterable[CanonicalSpan], gaps: Iterable[Gap]) -> "Draft":
        """Return the draft with these spans in the place of those of the same id."""
        changed = {span.span_id: span for span in changes}
        added = tuple(gaps)
        if not changed and not added:  # what most passes find in most traces
            return self
        if not changed:
            return replace(self, gaps=(*self.gaps, *added))
        return replace(self, spans={**self.spans, **changed}, gaps=(*self.gaps, *added), sorted_spans={})

    def with_added(self, spans: Sequence[CanonicalSpan], gaps: Iterable[Gap]) -> "Draft":
        """Return the draft with these spans, new or in the place of those of the same id.

        The id of a new span is that of the span it was read from, whose raw span it gets, with a slash and more.
        """
        if not spans:
            return self
        merged = {**self.spans, **{span.span_id: span for span in spans}}
        raw = dict(self.raw)
        for span in spans:
            if span.span_id not in raw:
                raw[span.span_id] = raw[span.span_id.rpartition("/")[0]]
        return Draft(merged, raw, (*self.gaps, *gaps), _parents_first(merged))

    def top_down(self) -> Iterable[CanonicalSpan]:
        """Yield the spans, parents before children; members of a cycle come last."""
        return (self.spans[span_id] for span_id in self.order)

    def of_kind(self, *kinds: str) -> Sequence[CanonicalSpan]:
        """Return the spans of these kinds by start time, name and id."""
        found = self.sorted_spans.get(kinds)
        if found is None:
            found = sorted((span for span in self.spans.values() if span.kind in kinds), key=by_start)
            self.sorted_spans[kinds] = found
        return found

    def nearest_above(self, kind: str, *, across: frozenset[str]) -> dict[str, CanonicalSpan]:
        """Find, for each span, the nearest span of a kind above it, looking across spans of certain kinds only."""
        nearest: dict[str, CanonicalSpan] = {}
        for span in self.top_down():
            parent = self.spans.get(span.parent_span_id or "")
            if parent is None or parent.span_id == span.span_id:
                continue
            if parent.kind == kind:
                nearest[span.span_id] = parent
            elif parent.kind in across and parent.span_id in nearest:
                nearest[span.span_id] = nearest[parent.span_id]
        return nearest


@dataclass(frozen=True, slots=True)
class Ancestry:
    """Which spans are above which, answered without walking: places in the order and the last place below each."""

    place: Mapping[str, int]
    last: Mapping[str, int]

    def is_above(self, upper: CanonicalSpan, lower: CanonicalSpan) -> bool:
        """Tell whether a span is an ancestor of another."""
        place = self.place[lower.span_id]
        return self.place[upper.span_id] < place <= self.last[upper.span_id]


def ancestry(draft: Draft) -> Ancestry:
    """Number the spans of a draft, whose order has all spans below a span right after it."""
    place = {span_id: index for index, span_id in enumerate(draft.order)}
    last = dict(place)
    for span_id in reversed(draft.order):
        parent = draft.spans[span_id].parent_span_id
        if parent is not None and parent in place and place[parent] < place[span_id]:
            last[parent] = max(last[parent], last[span_id])
    return Ancestry(place, last)


def by_start(span: CanonicalSpan) -> tuple[int, str, str]:
    """Sort key: start time, untimed last, then name and id."""
    return (span.start_time_unix_nano or LATEST, span.name, span.span_id)


def draft_of(spans: Sequence[CanonicalSpan], raw: Iterable[RawSpan], gaps: Iterable[Gap] = ()) -> Draft:
    """Make a draft of the spans of one trace, each given once."""
    by_id = {span.span_id: span for span in spans}
    return Draft(by_id, {span.span_id: span for span in raw}, tuple(gaps), _parents_first(by_id))


def _parents_first(spans: Mapping[str, CanonicalSpan]) -> tuple[str, ...]:
    children: dict[str, list[str]] = {}
    waiting = []
    for span in spans.values():
        if span.parent_span_id is not None and span.parent_span_id in spans:
            children.setdefault(span.parent_span_id, []).append(span.span_id)
        else:
            waiting.append(span.span_id)
    waiting.reverse()
    order: dict[str, None] = {}
    while waiting:
        span_id = waiting.pop()
        order[span_id] = None
        waiting += reversed(children.pop(span_id, []))
    return (*order, *(span_id for span_id in spans if span_id not in order))


def in_cycles(draft: Draft) -> list[CanonicalSpan]:
    """Return the spans that no span without a parent in the trace is above: those of a cycle and below it."""
    reached: set[str] = set()
    cyclic = []
    for span in draft.top_down():
        if span.parent_span_id not in draft.spans or span.parent_span_id in reached:
            reached.add(span.span_id)
        else:
            cyclic.append(span)
    return cyclic


def as_chain(span: CanonicalSpan) -> CanonicalSpan:
    """Return the span as one that is no step and holds no calls; what it was called stays readable."""
    return replace(span, kind="CHAIN", tool_calls=(), calls_announced=False)


def overlap(one: CanonicalSpan, other: CanonicalSpan) -> bool:
    """Tell whether two timed spans share some time."""
    if not one.start_time_unix_nano or not other.start_time_unix_nano:
        return False
    one_end = max(one.end_time_unix_nano or 0, one.start_time_unix_nano)
    other_end = max(other.end_time_unix_nano or 0, other.start_time_unix_nano)
    return one.start_time_unix_nano <= other_end and other.start_time_unix_nano <= one_end
