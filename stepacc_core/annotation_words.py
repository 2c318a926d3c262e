"""Annotations in plain sentences, for their author to read before they are stored."""

from dataclasses import replace

from stepacc_core.annotations import EXPECTED_STEPS_KEY, Annotation
from stepacc_core.references.parse import parse_references
from stepacc_core.references.words import explain_references
from stepacc_core.trajectory import Element, parse_trajectory

_UNCONFIRMED = "This is a suggestion that nobody has confirmed; it is imported only with --confirm."


def explain(annotation: Annotation) -> tuple[str, ...]:
    """Return what a valid annotation says, a line for each thing said; indented lines belong to the one above."""
    if not annotation.confirmed:
        return _UNCONFIRMED, *explain(replace(annotation, confirmed=True))
    if annotation.key != EXPECTED_STEPS_KEY:
        return explain_references(parse_references(annotation.value))
    trajectory = parse_trajectory(annotation.value)
    steps = (f"  {number}. {_element(element)}" for number, element in enumerate(trajectory.elements, start=1))
    count = "1 step is" if trajectory.total_steps == 1 else f"{trajectory.total_steps} steps are"
    return f"{count} expected, in this order:", *steps


def _element(element: Element) -> str:
    if isinstance(element, str):
        return f"`{element}`"
    return f"in any order: {'; '.join(f'`{name}`' for name in element.members) or 'nothing'}"
