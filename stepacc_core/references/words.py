"""References in plain sentences, for their author to read before they are stored."""

from collections.abc import Iterable, Iterator

from stepacc_core.references.model import (
    Budget,
    MatchMode,
    ReferenceElement,
    ReferenceGroup,
    ReferenceStep,
    ReferenceTrajectory,
    TaskReferences,
)

_MATCH: dict[MatchMode, str] = {
    "exact": "takes the steps of one reference in this order, and no others",
    "in_order": "takes the steps of one reference in this order; others may come between them",
    "any_order": "takes the steps of one reference, in whatever order; others may be among them",
}


def explain_references(references: TaskReferences) -> tuple[str, ...]:
    """Return what the references of a task say, a line for each thing said; indented lines belong to the one above."""
    return tuple(_lines(references))


def _lines(references: TaskReferences) -> Iterator[str]:
    yield f"A run passes that {_MATCH[references.match]} (match: {references.match})."
    for reference in references.references:
        yield from _reference(reference)
    if references.forbidden:
        said = "; ".join(" followed by ".join(f"`{name}`" for name in names) for names in references.forbidden)
        yield f"Forbidden, so that a run with it fails: {said}."
    if references.ignore:
        yield f"Left out before anything is compared: {_listed(f'`{name}`' for name in references.ignore)}."
    if limits := list(_limits(references.budget)):
        yield f"The budget is {_listed(limits)}."
    if references.final_answer is None:
        yield "Nothing is said of the final answer."
    else:
        yield f"The final answer {references.final_answer.words()}."


def _reference(reference: ReferenceTrajectory) -> Iterator[str]:
    confirmed = (
        "" if reference.confirmed else ", which is guessed: reports name it as an assumption until it is confirmed"
    )
    if not reference.elements:
        yield f"Reference `{reference.name}`{confirmed}: nothing is called."
        return
    yield f"Reference `{reference.name}`{confirmed}:"
    for number, element in enumerate(reference.elements, start=1):
        yield f"  {number}. {_element(element)}"


def _element(element: ReferenceElement) -> str:
    if isinstance(element, ReferenceGroup):
        return f"in any order: {'; '.join(_step(member) for member in element.members) or 'nothing'}"
    return _step(element)


def _step(step: ReferenceStep) -> str:
    kind = {"TOOL": "the tool ", "AGENT": "the agent ", None: ""}[step.kind]
    parts = [f"{kind}`{step.name}`"]
    if step.optional:
        parts.append(" (may be absent)")
    arguments = [f"`{name}` {comparator.words()}" for name, comparator in step.args.items()]
    if step.args_exact:
        arguments.append("no other argument is given" if arguments else "no argument is given")
    if arguments:
        parts.append(f", where {_listed(arguments)}")
    if step.count_once:
        parts.append("; a failed call that is repeated with the same arguments is an attempt of this step")
    return "".join(parts)


def _limits(budget: Budget) -> Iterator[str]:
    if budget.max_steps is not None:
        yield f"{budget.max_steps:,} steps"
    if budget.max_tokens is not None:
        yield f"{budget.max_tokens:,} tokens"
    if budget.max_cost_usd is not None:
        yield f"{budget.max_cost_usd:g} USD"


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
