"""`StepAccuracyComponent`: one source in a `defs.yaml`."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import dagster as dg
from pydantic import Field

from stepacc_core.conventions.declared import DeclaredMapping
from stepacc_core.model import PartitionType, SpanKind
from stepacc_core.policy import StepPolicy
from stepacc_dagster.assets import build_evaluation_assets
from stepacc_dagster.automation import build_automation
from stepacc_dagster.resources import StepaccDatabase, resource_key
from stepacc_dagster.sensors import build_changes_sensor
from stepacc_dagster.sources import (
    Evaluator,
    FollowSettings,
    MetricChoice,
    RetrySettings,
    SettleSettings,
    Source,
    Unannotated,
    evaluator_of,
)
from stepacc_dagster.stores.settings import store_settings


class RetryModel(dg.Model, dg.Resolvable):
    """Retries of a step that met a transient error."""

    # Limits of all numbers are checked by Source: Dagster puts a constraint of ours on a template's text too.
    max_retries: int = Field(default=3, description="Times a step is tried again; 0 or more.", examples=[3])
    delay_seconds: float = Field(default=5.0, description="Wait before the first, doubled each time.", examples=[5])


class SettlingModel(dg.Model, dg.Resolvable):
    """When a trace is over; one that still goes on is listed, and scored once it has settled."""

    quiet_minutes: float = Field(
        default=10, description="How long a trace that has its root must be quiet.", examples=[10]
    )
    close_hours: float = Field(
        default=24, description="How long a trace without a root that ended is waited for.", examples=[24]
    )


class FollowModel(dg.Model, dg.Resolvable):
    """The sensor that notes what changed in the store and brings it up to date."""

    enabled: bool = Field(default=True, description="Whether it runs unless somebody stops it.", examples=[True])
    interval_seconds: int = Field(default=30, description="Time between two looks.", examples=[30])
    rescore: bool = Field(
        default=True,
        description="Whether windows scored by another version or config of the metric are scored anew by themselves; "
        "if not, `stepacc backfill` does it.",
        examples=[False],
    )
    max_runs: int = Field(default=10, description="Runs asked for at a look.", examples=[10])


class StepPolicyModel(dg.Model, dg.Resolvable):
    """What of a trace is no step."""

    entry_agent: Literal["step", "root"] = Field(
        default="step",
        description="`root`: the agent that takes the request is no step, although its span lies below the root.",
    )
    handoffs: Literal["both", "tool", "agent", "none"] = Field(
        default="both", description="What counts of a tool call that hands over to an agent: the call, the agent."
    )
    ignore: list[str] = Field(
        default=[], description="Tools and agents that are never steps.", examples=[["transfer_to_agent"]]
    )


class MappingModel(dg.Model, dg.Resolvable):
    """A convention of your own: attributes, or dotted paths into JSON attributes, that hold the fields of a span."""

    name: str = Field(description="What messages call it.", examples=["our agents"])
    span_name: str | None = Field(default=None, description="Spans of this name only.")
    kind: SpanKind | None = Field(default=None, description="The kind of these spans.", examples=["TOOL"])
    kind_attribute: str | None = Field(default=None, description="Attribute that holds the kind; spans with it only.")
    kinds: dict[str, SpanKind] = Field(
        default={}, description="What its values mean.", examples=[{"function": "TOOL", "model": "LLM"}]
    )
    tool_name: str | None = Field(default=None, description="Attribute that holds the name of the tool.")
    tool_arguments: str | None = Field(default=None, description="Attribute that holds the arguments.")
    tool_call_id: str | None = Field(default=None, description="Attribute that holds the id of the call.")
    agent_name: str | None = Field(default=None, description="Attribute that holds the name of the agent.")
    tool_calls: str | None = Field(default=None, description="Attribute that holds the calls of a completion.")
    output: str | None = Field(default=None, description="Attribute that holds the output.")


class StepAccuracyComponent(dg.Component, dg.Model, dg.Resolvable):
    """Score the steps of one agent from its traces in Postgres.

    Gives a source its assets: the agent's traces and annotations (external), the canonical traces, the scores and
    their metadata, with checks, a job and a schedule.
    """

    source: str = Field(
        description="Name of the agent; prefix of the asset keys and value of the column `source`.",
        examples=["support_agent"],
    )
    start_date: str = Field(description="First partition, UTC; quote it in YAML.", examples=["2026-01-31"])
    partitions: Literal["daily", "hourly"] = Field(
        default="daily", description="Length of a partition's time window.", examples=["daily"]
    )
    end_offset: int = Field(
        default=1, description="1: the window that still runs can be scored too; 0: closed ones only."
    )
    partition_types: list[Literal["trace", "session"]] = Field(
        default=["trace"], description="What is scored.", examples=[["trace", "session"]]
    )
    unannotated: Literal["fail", "skip"] | dict[Literal["trace", "session"], Literal["fail", "skip"]] = Field(
        default="fail",
        description="What an occurrence nobody annotated gets: a failed row, or no row; one value, or one per type.",
        examples=[{"session": "skip"}],
    )
    metric: str = Field(default="agent.step_accuracy", description="Name of a registered metric.")
    metric_version: str | None = Field(
        default=None, description="Version of the metric; the newest where left out.", examples=["2.0.0"]
    )
    config: dict[str, Any] = Field(
        default={}, description="Config of the metric.", examples=[{"scoring_method": "strict_position"}]
    )
    task_id_attributes: list[str] = Field(
        default=[], description="Span attributes that hold the task id, tried after the built-in ones."
    )
    mappings: list[MappingModel] = Field(
        default=[],
        description="Conventions of your own, tried before the built-in ones.",
        examples=[[{"name": "our agents", "kind_attribute": "step.type", "tool_name": "step.tool"}]],
    )
    store: dict[str, Any] = Field(
        default={"kind": "otel_spans"},
        description="Where the spans are: `kind` is otel_spans, phoenix, mlflow, langfuse_v2 or table; docs/stores.md "
        "lists the settings of each.",
        examples=[{"kind": "phoenix", "projects": ["support"]}],
    )
    store_url_env: str | None = Field(
        default=None,
        description="Environment variable that holds the URL of the store's database, where that is another one.",
        examples=["PHOENIX_DATABASE_URL"],
    )
    step_policy: StepPolicyModel = Field(
        default=StepPolicyModel(),
        description="What of a trace is no step; the literal rule where left out.",
        examples=[{"entry_agent": "root"}],
    )
    database_url_env: str = Field(
        default="STEPACC_DATABASE_URL", description="Environment variable that holds the URL of the database."
    )
    retry: RetryModel = Field(default=RetryModel(), description="Retries of transient errors.")
    settling: SettlingModel = Field(
        default=SettlingModel(), description="When a trace is over.", examples=[{"quiet_minutes": 30}]
    )
    follow: FollowModel = Field(
        default=FollowModel(), description="How changes are followed.", examples=[{"interval_seconds": 60}]
    )
    max_partitions_per_run: int = Field(
        default=10, description="Partitions that one run of a backfill takes; 1 or more.", examples=[10]
    )

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Describe the component to `dg`."""
        return dg.ComponentTypeSpec(tags=["evaluation", "agents"])

    def to_source(self) -> Source:
        """Return the settings as the plain function takes them."""
        return Source(
            name=self.source,
            start_date=self.start_date,
            partitions=self.partitions,
            end_offset=self.end_offset,
            partition_types=_unannotated(self.partition_types, self.unannotated),
            metric=MetricChoice(self.metric, self.metric_version, self.config),
            task_id_attributes=tuple(self.task_id_attributes),
            mappings=tuple(DeclaredMapping(**mapping.model_dump()) for mapping in self.mappings),
            store=store_settings(self.store),
            store_url_env=self.store_url_env,
            step_policy=StepPolicy(
                entry_agent=self.step_policy.entry_agent,
                handoffs=self.step_policy.handoffs,
                ignore=tuple(self.step_policy.ignore),
            ),
            database_url_env=self.database_url_env,
            retry=RetrySettings(self.retry.max_retries, self.retry.delay_seconds),
            settling=SettleSettings(**self.settling.model_dump()),
            follow=FollowSettings(**self.follow.model_dump()),
            max_partitions_per_run=self.max_partitions_per_run,
        )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:  # noqa: ARG002 (Dagster's signature)
        """Build the source's definitions."""
        return build_evaluation_definitions(self.to_source())


def build_evaluation_definitions(source: Source, evaluator: Evaluator | None = None) -> dg.Definitions:
    """Build assets, checks, job, schedule and resource of a source.

    Args:
        source: the source's settings.
        evaluator: its metric and config; resolved from the settings where left out.
    """
    evaluator = evaluator or evaluator_of(source)
    with warnings.catch_warnings():
        # Ours to know, not our users': Dagster marks parts of its API as beta, such as backfill policies and kinds.
        warnings.simplefilter("ignore", category=dg.BetaWarning)
        warnings.simplefilter("ignore", category=dg.PreviewWarning)
        return dg.Definitions.merge(
            dg.Definitions(
                assets=build_evaluation_assets(source, evaluator),
                resources={resource_key(source): StepaccDatabase(url_env=source.database_url_env)},
                sensors=[build_changes_sensor(source, evaluator)],
            ),
            build_automation(source, evaluator),
        )


def _unannotated(
    partition_types: Sequence[PartitionType], setting: Unannotated | Mapping[PartitionType, Unannotated]
) -> dict[PartitionType, Unannotated]:
    if isinstance(setting, str):
        return dict.fromkeys(partition_types, setting)
    return {kind: setting.get(kind, "fail") for kind in partition_types}
