"""What is suggested for a task, with its support, in the forms that annotations have."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stepacc_core.names import StepKind


@dataclass(frozen=True, slots=True)
class Suggested:
    """One suggested step: its name, its kind, and in how many runs it stands. Too few of them, and it is optional.

    `arguments` are those that it has in every run, as a reference writes them.
    """

    name: str
    kind: StepKind
    support: int
    optional: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class SuggestedElement:
    """A step, or the members of a group; `reason` says why they may come in any order, empty for a step."""

    members: tuple[Suggested, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Unsteady:
    """A step that is in enough runs to be optional, and is left out since it has no steady place."""

    name: str
    kind: StepKind
    support: int


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What good runs of a task have in common.

    `runs` is how many there were, and `fitting` how many of them `expected_steps` scores 1.
    """

    elements: tuple[SuggestedElement, ...]
    runs: int
    fitting: int
    unsteady: tuple[Unsteady, ...] = ()

    def expected_steps(self) -> list[str | list[str]]:
        """Return the trajectory for `agent.step_accuracy`, optional steps left out."""
        return list(_written(self._required()))

    def reference(self, *, arguments: bool = False) -> list[Any]:
        """Return the steps of a reference for `agent.trajectory_match`, optional steps marked.

        Args:
            arguments: whether those that a step has in every run are named, and so checked.
        """
        return [
            _step(element.members[0], arguments=arguments)
            if len(element.members) == 1
            else {"any_order": [_step(member, arguments=arguments) for member in element.members]}
            for element in self.elements
        ]

    def _required(self) -> Iterator[SuggestedElement]:
        for element in self.elements:
            members = tuple(member for member in element.members if not member.optional)
            if members:
                yield replace(element, members=members)


def _written(elements: Iterator[SuggestedElement]) -> Iterator[str | list[str]]:
    for element in elements:
        names = [member.name for member in element.members]
        if len(set(names)) == 1:  # a group of equal names is a sequence of them
            yield from names
        else:
            yield names


def _step(step: Suggested, *, arguments: bool) -> dict[str, Any]:
    told: dict[str, Any] = {step.kind.lower(): step.name}
    if arguments and step.arguments:
        told["args"] = dict(step.arguments)
    return told | {"optional": True} if step.optional else told
