"""What is acceptable for a task, as small frozen types (contract of `agent.trajectory_match`, sections 1 to 5).

`stepacc_core.references.parse` makes them from what people write; the metric only reads them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from stepacc_core.names import StepKind

MatchMode = Literal["exact", "in_order", "any_order"]


class Missing:
    """The type of `MISSING`, the value of an argument that was not given; a null that was given is None."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the name under which it is known."""
        return "MISSING"


MISSING: Final = Missing()

Reason = Literal["unparsable", "redacted", "too_slow", "not_recorded", "hook_failed"]
"""Why a check cannot be told, or fails whatever was expected: the arguments are no JSON object, the value was redacted,
the pattern took too long, no answer was recorded, or the user's own function failed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison says of a value: `holds` is None where it cannot be told, and then `reason` says why."""

    holds: bool | None
    reason: Reason | None = None


class Comparator(Protocol):
    """What a reference says of one argument."""

    def written(self) -> Any:
        """Return it as JSON, as its author would write it."""
        ...

    def words(self) -> str:
        """Say it in words that follow the argument's name, such as `is within 0.01 of 25`."""
        ...

    def judge(self, value: Any) -> Verdict:
        """Compare with a JSON value, or with `MISSING`."""
        ...


class AnswerCheck(Protocol):
    """What a task says of the final answer."""

    def written(self) -> Any:
        """Return it as JSON, as its author would write it."""
        ...

    def words(self) -> str:
        """Say it in words that follow `the final answer`, such as `contains "refunded"`."""
        ...

    def judge(self, answer: Any, asked: "Asked") -> "AnswerResult":
        """Check an answer that was recorded."""
        ...


@dataclass(frozen=True, slots=True)
class ReferenceStep:
    """One step of a reference.

    `kind` is None for a bare name, which a tool satisfies by its folded name and an agent exactly, as in
    `agent.step_accuracy`. `args_exact` refuses arguments that `args` does not name. `count_once`: retries of the same
    failing call are attempts of this one step.
    """

    name: str
    kind: StepKind | None = None
    args: Mapping[str, Comparator] = field(default_factory=dict, hash=False)
    args_exact: bool = False
    optional: bool = False
    count_once: bool = False


@dataclass(frozen=True, slots=True)
class ReferenceGroup:
    """Steps that may come in any order; a multiset."""

    members: tuple[ReferenceStep, ...]


ReferenceElement = ReferenceStep | ReferenceGroup


@dataclass(frozen=True, slots=True)
class ReferenceTrajectory:
    """One acceptable way; without elements the agent should call nothing. Not `confirmed` is guessed."""

    name: str
    elements: tuple[ReferenceElement, ...]
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may take; None sets no bound."""

    max_steps: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class TaskReferences:
    """Everything that is acceptable for a task: at least one reference, in the order written, names unique.

    `forbidden` holds sequences of names; a single name is a sequence of one. `ignore` names steps that are no steps.
    """

    match: MatchMode
    references: tuple[ReferenceTrajectory, ...]
    forbidden: tuple[tuple[str, ...], ...] = ()
    ignore: tuple[str, ...] = ()
    budget: Budget = field(default_factory=Budget)
    final_answer: AnswerCheck | None = None


@dataclass(frozen=True, slots=True)
class ArgumentCheck:
    """What one check of one argument found, as the metadata of a matched pair lists it.

    `expected` is the comparator as JSON, as written. `actual` is the value given, None where none was. `holds` is None
    where it cannot be told, which is a gap and no failure. `name` is `*` for the check of `args_exact`, of which
    `actual` holds the arguments nobody named.
    """

    name: str
    expected: Any
    actual: Any
    holds: bool | None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """What the check of the final answer found.

    `holds` is None where it cannot be told (`reason` says why); a user's own function that failed has its sentence in
    `error` too, and makes the row an error, never a 0. `score` is the number such a function returned.
    """

    holds: bool | None
    reason: Reason | None = None
    score: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user's own function is told beside the answer."""

    task: str | None
    reference: ReferenceTrajectory | None
