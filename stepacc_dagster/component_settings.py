"""The nested settings of `StepAccuracyComponent`, as a `defs.yaml` has them.

A field is described in its resolver, not by pydantic's `Field`: of the latter Dagster drops description and example
when it derives the schema that `dg` and editors read. Limits of numbers are checked by `Source`: Dagster puts a
constraint of ours on a template's text, too.
"""

from typing import Annotated, Any, Literal

import dagster as dg
from pydantic import ConfigDict, Field

from stepacc_core.model import SpanKind
from stepacc_core.redaction import KINDS


def described(description: str, example: Any) -> dg.Resolver:
    """Return the resolver that describes a field and resolves it as Dagster does by default."""
    resolver: dg.Resolver = dg.Resolver.default(description=description, examples=[example])
    return resolver


class RetryModel(dg.Model, dg.Resolvable):
    """Retries of a step that met a transient error."""

    max_retries: Annotated[int, described("Times a step is tried again; 0 or more.", 3)] = 3
    delay_seconds: Annotated[float, described("Wait before the first, doubled each time.", 5)] = 5.0


class MetricModel(dg.Model, dg.Resolvable):
    """One of several metrics of a source."""

    name: Annotated[str, described("Name of the metric.", "agent.trajectory_match")]
    version: Annotated[str | None, described("Its version; the newest where left out.", "1.0.0")] = None
    config: Annotated[dict[str, Any], described("Its config.", {"scoring_method": "strict_position"})] = Field(
        default={}
    )


class SummariesModel(dg.Model, dg.Resolvable):
    """How the repeated runs of a task are summarised."""

    k: Annotated[list[int], described("Numbers of runs for which pass@k and pass^k are given.", [1, 2, 3, 5])] = Field(
        default=[1, 2, 3, 5]
    )
    pass_thresholds: Annotated[
        dict[str, float],
        described(
            "By name of a metric or member, the score from which a run passes; the best score alone where left out.",
            {"agent.step_accuracy": 0.9},
        ),
    ] = Field(default={})


class SettlingModel(dg.Model, dg.Resolvable):
    """When a trace is over; one that still goes on is listed, and scored once it has settled."""

    quiet_minutes: Annotated[float, described("How long a trace that has its root must be quiet.", 10)] = 10
    close_hours: Annotated[float, described("How long a trace without a root that ended is waited for.", 24)] = 24


class FollowModel(dg.Model, dg.Resolvable):
    """The sensor that notes what changed in the store and brings it up to date."""

    enabled: Annotated[bool, described("Whether it runs unless somebody stops it.", True)] = True  # noqa: FBT003
    interval_seconds: Annotated[int, described("Time between two looks.", 30)] = 30
    rescore: Annotated[
        bool,
        described(
            "Whether windows scored by another version or config of the metric are scored anew by themselves; if not, "
            "`stepacc backfill` does it.",
            False,  # noqa: FBT003
        ),
    ] = True
    max_runs: Annotated[int, described("Runs asked for at a look.", 10)] = 10


class RedactionModel(dg.Model, dg.Resolvable):
    """Which secrets and personal data are replaced by marks before anything is stored."""

    enabled: Annotated[bool, described("false: values are stored as they are.", False)] = True  # noqa: FBT003
    kinds: Annotated[list[str], described("Built-in kinds to look for; all where left out.", ["email", "token"])] = (
        Field(default=list(KINDS))
    )
    patterns: Annotated[
        dict[str, str],
        described("Kinds of your own, each by a regular expression in RE2's syntax.", {"customer": "CUST-[0-9]{8}"}),
    ] = Field(default={})
    allow: Annotated[
        list[str], described("Values that stay as they are; * stands for any text.", ["support@example.org"])
    ] = Field(default=[])


class StepPolicyModel(dg.Model, dg.Resolvable):
    """What of a trace is no step."""

    entry_agent: Annotated[
        Literal["step", "root"],
        described(
            "`root`: the agent that takes the request is no step, although its span lies below the root.", "root"
        ),
    ] = "step"
    handoffs: Annotated[
        Literal["both", "tool", "agent", "none"],
        described("What counts of a tool call that hands over to an agent: the call, the agent.", "tool"),
    ] = "both"
    ignore: Annotated[list[str], described("Tools and agents that are never steps.", ["transfer_to_agent"])] = Field(
        default=[]
    )


class AssetsModel(dg.Model, dg.Resolvable):
    """How the assets of the source fit into the project's catalog; `post_processing` is for what differs among them."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    key_prefix: Annotated[
        list[str], described("Parts of each asset key that come before the name of the source.", ["evals"])
    ] = Field(default=[])
    group_name: Annotated[str | None, described("Group; the name of the source where left out.", "agent_quality")] = (
        None
    )
    owners: Annotated[list[str], described("E-mail addresses, and teams as `team:evals`.", ["team:evals"])] = Field(
        default=[]
    )
    tags: Annotated[dict[str, str], described("Tags beside those that the assets have.", {"tier": "gold"})] = Field(
        default={}
    )
    automation_condition: Annotated[
        dg.AutomationCondition[Any] | None,
        dg.Resolver.default(
            model_field_type=str | None,
            description="When Dagster makes the canonical traces, the scores and their metadata by itself.",
            examples=["{{ dg.AutomationCondition.on_cron('0 3 * * *') }}"],
        ),
    ] = None


class MappingModel(dg.Model, dg.Resolvable):
    """A convention of your own: attributes, or dotted paths into JSON attributes, that hold the fields of a span."""

    name: Annotated[str, described("What messages call it.", "our agents")]
    span_name: Annotated[str | None, described("Spans of this name only.", "run_step")] = None
    kind: Annotated[SpanKind | None, described("The kind of these spans.", "TOOL")] = None
    kind_attribute: Annotated[
        str | None, described("Attribute that holds the kind; spans with it only.", "step.type")
    ] = None
    kinds: Annotated[dict[str, SpanKind], described("What its values mean.", {"function": "TOOL", "model": "LLM"})] = (
        Field(default={})
    )
    tool_name: Annotated[str | None, described("Attribute that holds the name of the tool.", "step.tool")] = None
    tool_arguments: Annotated[str | None, described("Attribute that holds the arguments.", "step.input")] = None
    tool_call_id: Annotated[str | None, described("Attribute that holds the id of the call.", "step.call_id")] = None
    agent_name: Annotated[str | None, described("Attribute that holds the name of the agent.", "step.agent")] = None
    tool_calls: Annotated[
        str | None, described("Attribute that holds the calls of a completion.", "step.response.tool_calls")
    ] = None
    output: Annotated[str | None, described("Attribute that holds the output.", "step.output")] = None
