"""References as people write them (contract section 1): the one place for keys, defaults and what is refused."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from stepacc_core.names import StepKind
from stepacc_core.nearest import meant
from stepacc_core.references.answers import AnyAnswerCheck
from stepacc_core.references.comparators import AnyComparator
from stepacc_core.references.model import (
    Budget,
    MatchMode,
    ReferenceElement,
    ReferenceGroup,
    ReferenceStep,
    ReferenceTrajectory,
    TaskReferences,
)
from stepacc_core.references.written import tag
from stepacc_core.shown import shown


def _name(value: Any) -> Any:
    if not (isinstance(value, str) and value):
        msg = f"{shown(value)} is no name; write text that is not empty"
        raise ValueError(msg)
    return value


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _flat(members: Any) -> Any:
    for member in members if isinstance(members, list) else ():
        if isinstance(member, list) or (isinstance(member, Mapping) and "any_order" in member):
            msg = f"{shown(member)} is a group inside a group; groups have one level, so list its members in the outer"
            raise ValueError(msg)
    return members


Name = Annotated[str, Field(min_length=1), BeforeValidator(_name)]
"""Text that is not empty."""


class _Object(BaseModel):
    """An object of which every key is known."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        if not isinstance(value, Mapping):
            msg = f"{shown(value)} is no object with the keys {', '.join(known)}"
            raise ValueError(msg)  # noqa: TRY004 (pydantic takes ValueError as a refusal)
        if unknown := [f"`{key}`" for key in value if key not in known]:
            near = meant(unknown[0].strip("`"), known)
            msg = f"unknown key {', '.join(unknown)}; known are {', '.join(known)}{near}"
            raise ValueError(msg)
        return value


class _Step(_Object):
    """What a step says beside its name."""

    args: dict[str, AnyComparator] = Field(
        default_factory=dict, description="Arguments that are checked, each by a plain value or a comparator."
    )
    args_exact: bool = Field(default=False, description="Whether arguments that `args` does not name are refused.")
    optional: bool = Field(default=False, description="Whether the step may be absent.")
    count_as: Literal["once"] | None = Field(
        default=None, description="`once`: retries of the same failing call are attempts of one step."
    )

    def _made(self, name: str, kind: StepKind) -> ReferenceStep:
        return ReferenceStep(
            name, kind, dict(self.args), self.args_exact, self.optional, count_once=self.count_as == "once"
        )


class ToolStep(_Step):
    """A call of a tool."""

    tool: Name = Field(description="The tool's name; case, `-` and `_` are nothing.")

    def made(self) -> ReferenceStep:
        """Return the step."""
        return self._made(self.tool, "TOOL")


class AgentStep(_Step):
    """A turn of an agent."""

    agent: Name = Field(description="The agent's name, exactly.")

    def made(self) -> ReferenceStep:
        """Return the step."""
        return self._made(self.agent, "AGENT")


def _kind_of_member(value: Any) -> str | None:
    if isinstance(value, str):
        return tag("name")
    if isinstance(value, Mapping):
        return next((tag(keyword) for keyword in ("any_order", "tool", "agent") if keyword in value), None)
    return None


def _kind_of_element(value: Any) -> str | None:
    return tag("names") if isinstance(value, list) else _kind_of_member(value)


AnyStep = Annotated[
    Annotated[Name, Tag(tag("name"))] | Annotated[ToolStep, Tag(tag("tool"))] | Annotated[AgentStep, Tag(tag("agent"))],
    Discriminator(
        _kind_of_member,
        custom_error_type="unknown_step",
        custom_error_message="a member of a group is a name, or an object with `tool` or `agent`",
    ),
]
Members = Annotated[list[AnyStep], BeforeValidator(_flat)]


class Group(_Object):
    """Steps that may come in any order."""

    any_order: Members = Field(description="The steps, in any order; a group in a group is refused.")


AnyElement = Annotated[
    Annotated[Name, Tag(tag("name"))]
    | Annotated[ToolStep, Tag(tag("tool"))]
    | Annotated[AgentStep, Tag(tag("agent"))]
    | Annotated[Group, Tag(tag("any_order"))]
    | Annotated[Members, Tag(tag("names"))],
    Discriminator(
        _kind_of_element,
        custom_error_type="unknown_step",
        custom_error_message="a step is a name, an object with `tool` or `agent`, or a group: a list, or an object "
        "with `any_order`",
    ),
]


class Reference(_Object):
    """One acceptable way to do the task."""

    name: Name | None = Field(default=None, description="What it is called in reports; by default its place.")
    confirmed: bool = Field(
        default=True, description="False where it is guessed; reports list it as an assumption until a person confirms."
    )
    steps: list[AnyElement] = Field(description="The steps in order; none means that nothing should be called.")

    def made(self, number: int) -> ReferenceTrajectory:
        """Return the reference, which stands at this place, from 1 on."""
        elements = tuple(_element(element) for element in self.steps)
        return ReferenceTrajectory(self.name or f"reference {number}", elements, self.confirmed)


def _bare(value: Any) -> Any:
    return {"steps": value} if isinstance(value, list) else value


AnyReference = Annotated[Reference, BeforeValidator(_bare, json_schema_input_type=Reference | list[AnyElement])]
"""A reference, or just its steps."""


class BudgetLimits(_Object):
    """What a run may take."""

    max_steps: Annotated[int, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    max_cost_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None


_Sequence = Annotated[list[Name], Field(min_length=1)]
AnyForbidden = Annotated[_Sequence, BeforeValidator(_listed, json_schema_input_type=Name | _Sequence)]
"""A name, or names that follow each other."""


class References(_Object):
    """What is acceptable for a task."""

    match: MatchMode = Field(
        default="in_order", description="Which mode decides whether a run passes; extras are allowed unless `exact`."
    )
    references: list[AnyReference] = Field(min_length=1, description="The acceptable ways; one of them suffices.")
    forbidden: list[AnyForbidden] = Field(
        default_factory=list, description="Steps that must not run: names, and lists of names for sequences."
    )
    ignore: list[Name] = Field(default_factory=list, description="Names of steps that are left out first.")
    budget: BudgetLimits = Field(default_factory=BudgetLimits, description="What a run may take.")
    final_answer: AnyAnswerCheck | None = Field(default=None, description="What the final answer must be.")

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [reference.made(number).name for number, reference in enumerate(self.references, start=1)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            msg = f"two references are called {twice[0]!r}; give each a name of its own"
            raise ValueError(msg)
        return self

    def made(self) -> TaskReferences:
        """Return the references of the task."""
        return TaskReferences(
            match=self.match,
            references=tuple(reference.made(n) for n, reference in enumerate(self.references, start=1)),
            forbidden=tuple(tuple(names) for names in self.forbidden),
            ignore=tuple(self.ignore),
            budget=Budget(**self.budget.model_dump()),
            final_answer=self.final_answer,
        )


def _element(element: str | ToolStep | AgentStep | Group | Sequence[Any]) -> ReferenceElement:
    if isinstance(element, Group | list):
        members = element.any_order if isinstance(element, Group) else element
        return ReferenceGroup(tuple(_step(member) for member in members))
    return _step(element)


def _step(step: Any) -> ReferenceStep:
    return ReferenceStep(step) if isinstance(step, str) else step.made()
