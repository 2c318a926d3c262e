"""The shape of the trace as it came: nothing is changed here, only told."""

from collections.abc import Iterable

from stepacc_core.conventions.cleaning.draft import Draft, in_cycles
from stepacc_core.model import CanonicalSpan, Gap
from stepacc_core.steps import find_roots

_MATTER = frozenset({"TOOL", "AGENT", "LLM"})


def tree(draft: Draft) -> Draft:
    """Tell of a missing or assumed root, of spans whose parent is missing, and of cycles."""
    spans = list(draft.spans.values())
    roots = find_roots(spans)
    orphans = [s for s in spans if s.parent_span_id and s.parent_span_id not in draft.spans and s.span_id not in roots]
    cyclic = in_cycles(draft)
    gaps = []
    if not roots:
        gaps.append(Gap("missing_root", "The trace has no root span; every tool and agent span counts as a step."))
    assumed = [span for span in spans if span.span_id in roots and span.parent_span_id]
    if assumed:
        detail = f"The trace is cut off above {assumed[0].name!r}, which has all other spans below it: taken as root."
        gaps.append(Gap("assumed_root", detail, (assumed[0].span_id,)))
    if orphans:
        detail = f"{len(orphans)} spans have a parent that is not in the trace; they are no roots."
        gaps.append(Gap("orphan_spans", detail, _ids(orphans)))
    if cyclic:
        detail = f"{len(cyclic)} spans are their own ancestors or below such spans; none of them is a root."
        gaps.append(Gap("cycle", detail, _ids(cyclic)))
    return draft.changed((), gaps)


def times(draft: Draft) -> Draft:
    """Tell of spans that end before they start, have no start, or stand at a moment that is not their own."""
    spans = list(draft.spans.values())
    backwards = [s for s in spans if (s.end_time_unix_nano or 0) and (s.start_time_unix_nano or 0) > _end(s)]
    untimed = [s for s in spans if s.kind in _MATTER and not s.start_time_unix_nano]
    gaps = []
    if backwards:
        detail = f"{len(backwards)} spans end before they start; they are ordered by their start."
        gaps.append(Gap("end_before_start", detail, _ids(backwards)))
    if untimed:
        gaps.append(Gap("missing_start_time", f"{len(untimed)} spans have no start time.", _ids(untimed)))
    hosted = [span for span in draft.of_kind("TOOL") if _is_stamped_at_parent(draft, span)]
    if hosted:
        detail = (
            f"{len(hosted)} tool spans take no time and start with their parent, as calls run by the model's provider "
            "do; when they happened is not known, so their place in the order is uncertain."
        )
        gaps.append(Gap("uncertain_order", detail, _ids(hosted)))
    return draft.changed((), gaps)


def _end(span: CanonicalSpan) -> int:
    return span.end_time_unix_nano or 0


def _is_stamped_at_parent(draft: Draft, span: CanonicalSpan) -> bool:
    parent = draft.spans.get(span.parent_span_id or "")
    start = span.start_time_unix_nano
    return parent is not None and start is not None and start == span.end_time_unix_nano == parent.start_time_unix_nano


def _ids(spans: Iterable[CanonicalSpan]) -> tuple[str, ...]:
    return tuple(sorted(span.span_id for span in spans))
