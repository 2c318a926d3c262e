"""`StepAccuracyComponent`: one source in a `defs.yaml`."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, Self, TypeVar

import dagster as dg
from pydantic import BaseModel, Field, ValidationError

from stepacc_core.conventions.declared import DeclaredMapping
from stepacc_core.errors import ConfigError, StepaccError
from stepacc_core.model import PartitionType
from stepacc_core.policy import StepPolicy
from stepacc_core.redaction import RedactionSettings
from stepacc_core.summaries import SummarySettings
from stepacc_dagster.asset_settings import AssetSettings
from stepacc_dagster.assets import build_evaluation_assets
from stepacc_dagster.automation import build_automation
from stepacc_dagster.catalog import refuse_asset_settings
from stepacc_dagster.component_settings import (
    AssetsModel,
    FollowModel,
    MappingModel,
    MetricModel,
    RedactionModel,
    RetryModel,
    SettlingModel,
    StepPolicyModel,
    SummariesModel,
    described,
)
from stepacc_dagster.defs_errors import located
from stepacc_dagster.evaluators import Evaluator, evaluators_of
from stepacc_dagster.gate_checks import build_gates
from stepacc_dagster.gate_model import GateModel, gate_settings
from stepacc_dagster.notifications import build_failure_sensor
from stepacc_dagster.resources import StepaccDatabase, resource_key
from stepacc_dagster.scaffolder import StepAccuracyScaffolder
from stepacc_dagster.sensors import build_changes_sensor
from stepacc_dagster.sources import FollowSettings, MetricChoice, RetrySettings, SettleSettings, Source, Unannotated
from stepacc_dagster.stores.settings import store_settings
from stepacc_dagster.trace_links import EXAMPLE
from stepacc_dagster.writeback.run import written_kinds
from stepacc_dagster.writeback.settings import WriteBackSettings, write_back_settings

T = TypeVar("T")


@dg.scaffold_with(StepAccuracyScaffolder)
class StepAccuracyComponent(dg.Component, dg.Model, dg.Resolvable):
    """Score the steps of one agent from its traces in Postgres.

    Gives a source its assets: the agent's traces and annotations (external), the canonical traces, the scores and
    their metadata, with checks, a job and a schedule.
    """

    source: Annotated[
        str,
        described("Name of the agent; prefix of the asset keys and value of the column `source`.", "support_agent"),
    ]
    start_date: Annotated[str, described("First partition, UTC; quote it in YAML.", "2026-01-31")]
    partitions: Annotated[Literal["daily", "hourly"], described("Length of a partition's time window.", "daily")] = (
        "daily"
    )
    end_offset: Annotated[
        int, described("1: the window that still runs can be scored too; 0: closed ones only.", 1)
    ] = 1
    partition_types: Annotated[
        list[Literal["trace", "session"]], described("What is scored.", ["trace", "session"])
    ] = Field(default=["trace"])
    unannotated: Annotated[
        Literal["fail", "skip"] | dict[Literal["trace", "session"], Literal["fail", "skip"]],
        described(
            "What an occurrence nobody annotated gets: a failed row, or no row; one value, or one per type. A metric "
            "that requires no expected steps scores it.",
            {"session": "skip"},
        ),
    ] = "fail"
    metric: Annotated[
        str | None,
        described(
            "Name of a metric: a built-in one, or one of an installed package; agent.step_accuracy where left out.",
            "agent.step_accuracy",
        ),
    ] = None
    metric_version: Annotated[str | None, described("Version of the metric; the newest where left out.", "2.0.0")] = (
        None
    )
    config: Annotated[dict[str, Any], described("Config of the metric.", {"scoring_method": "strict_position"})] = (
        Field(default={})
    )
    metrics: Annotated[
        list[MetricModel],
        described(
            "Several metrics, each with version and config of its own, instead of metric, metric_version and config.",
            [{"name": "agent.step_accuracy"}, {"name": "agent.trajectory_match"}],
        ),
    ] = Field(default=[])
    task_id_attributes: Annotated[
        list[str],
        described("Span attributes that hold the task id, tried after the built-in ones.", ["app.test_case"]),
    ] = Field(default=[])
    mappings: Annotated[
        list[MappingModel],
        described(
            "Conventions of your own, tried before the built-in ones.",
            [{"name": "our agents", "kind_attribute": "step.type", "tool_name": "step.tool"}],
        ),
    ] = Field(default=[])
    store: Annotated[
        dict[str, Any],
        described(
            "Where the spans are: `kind` is otel_spans, phoenix, mlflow, langfuse_v2 or table; docs/stores.md lists "
            "the settings of each.",
            {"kind": "phoenix", "projects": ["support"]},
        ),
    ] = Field(default={"kind": "otel_spans"})
    store_url_env: Annotated[
        str | None,
        described(
            "Environment variable that holds the URL of the store's database, where that is another one.",
            "PHOENIX_DATABASE_URL",
        ),
    ] = None
    trace_url: Annotated[
        str | None,
        described(
            "Address of a trace in the store's own UI, with {trace_id} where its id goes, for links from Dagster and "
            "the commands to the trace.",
            EXAMPLE,
        ),
    ] = None
    redaction: Annotated[
        RedactionModel,
        described(
            "Which secrets and personal data are redacted before anything is stored; docs/redaction.md lists them.",
            {"patterns": {"customer": "CUST-[0-9]{8}"}, "allow": ["support@example.org"]},
        ),
    ] = RedactionModel()
    step_policy: Annotated[
        StepPolicyModel,
        described("What of a trace is no step; the literal rule where left out.", {"entry_agent": "root"}),
    ] = StepPolicyModel()
    assets: Annotated[
        AssetsModel,
        described(
            "Key prefix, group, owners, tags and automation condition of the source's assets.",
            {"key_prefix": ["evals"], "owners": ["team:evals"]},
        ),
    ] = AssetsModel()
    database_url_env: Annotated[
        str, described("Environment variable that holds the URL of the database.", "STEPACC_DATABASE_URL")
    ] = "STEPACC_DATABASE_URL"
    retry: Annotated[RetryModel, described("Retries of transient errors.", {"max_retries": 5})] = RetryModel()
    settling: Annotated[SettlingModel, described("When a trace is over.", {"quiet_minutes": 30})] = SettlingModel()
    follow: Annotated[FollowModel, described("How changes are followed.", {"interval_seconds": 60})] = FollowModel()
    on_failure: Annotated[
        str | None,
        described(
            "Function that is called with each failed run, as `package.module:function`; the log where left out.",
            "my_project.alerts:page_somebody",
        ),
    ] = None
    freshness_hours: Annotated[
        float | None,
        described("Hours after which Dagster shows scores as out of date where nothing was scored.", 50),
    ] = None
    summaries: Annotated[SummariesModel, described("How repeated runs are summarised.", {"k": [1, 2, 3, 5]})] = (
        SummariesModel()
    )
    gates: Annotated[
        list[GateModel],
        described("What the scores must meet, each told by an asset check.", [{"min_mean": 0.9, "min_coverage": 0.95}]),
    ] = Field(default=[])
    report_folder: Annotated[
        str | None,
        described(
            "Folder in which an asset keeps the report of the source as an HTML page; no such asset where left out.",
            "/srv/reports",
        ),
    ] = None
    write_back: Annotated[
        dict[str, Any] | None,
        described(
            "Server to which an asset writes the scores back: `kind` is phoenix, mlflow, langfuse or otlp; "
            "docs/export.md lists the settings of each. No such asset where left out.",
            {"kind": "phoenix", "url": "https://phoenix.example.org"},
        ),
    ] = None
    max_partitions_per_run: Annotated[int, described("Partitions that one run of a backfill takes; 1 or more.", 10)] = (
        10
    )

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """Describe the component to `dg`."""
        return dg.ComponentTypeSpec(tags=["evaluation", "agents"])

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Load the component from a `defs.yaml`.

        Raises:
            ConfigError: a setting is refused; the sentence names file, line and attribute.
            dagster.components.resolved.errors.ResolutionException: a template or a nested setting is refused; Dagster
                names file and line, too.
        """
        document = context.resolution_context.source_position_tree
        try:
            component = super().load(attributes, context)
            source = component.to_source()
            evaluators = evaluators_of(source)
            refuse_asset_settings(source)
            build_gates(source, evaluators)
            if source.write_back is not None:
                written_kinds(source.write_back, evaluators)
        except (StepaccError, ValidationError) as error:
            if document is None:
                raise
            raise located(error, document) from None
        return component

    def to_source(self) -> Source:
        """Return the settings as the plain function takes them."""
        return Source(
            name=self.source,
            start_date=self.start_date,
            partitions=self.partitions,
            end_offset=self.end_offset,
            partition_types=_unannotated(self.partition_types, self.unannotated),
            metric=self._metric(),
            metrics=tuple(MetricChoice(each.name, each.version, each.config) for each in self.metrics),
            task_id_attributes=tuple(self.task_id_attributes),
            mappings=tuple(self._mappings()),
            store=_named("store", lambda: store_settings(self.store)),
            store_url_env=self.store_url_env,
            trace_url=self.trace_url,
            redaction=RedactionSettings(
                self.redaction.enabled,
                tuple(self.redaction.kinds),
                self.redaction.patterns,
                tuple(self.redaction.allow),
            ),
            step_policy=StepPolicy(
                entry_agent=self.step_policy.entry_agent,
                handoffs=self.step_policy.handoffs,
                ignore=tuple(self.step_policy.ignore),
            ),
            assets=AssetSettings(
                key_prefix=tuple(self.assets.key_prefix),
                group_name=self.assets.group_name,
                owners=tuple(self.assets.owners),
                tags=self.assets.tags,
                automation_condition=self.assets.automation_condition,
            ),
            database_url_env=self.database_url_env,
            retry=RetrySettings(self.retry.max_retries, self.retry.delay_seconds),
            settling=SettleSettings(**self.settling.model_dump()),
            follow=FollowSettings(**self.follow.model_dump()),
            on_failure=self.on_failure,
            freshness_hours=self.freshness_hours,
            report_folder=self.report_folder,
            write_back=self._write_back(),
            gates=tuple(gate_settings(self.gates)),
            summaries=SummarySettings(tuple(self.summaries.k), self.summaries.pass_thresholds),
            max_partitions_per_run=self.max_partitions_per_run,
        )

    def _metric(self) -> MetricChoice | None:
        """Return the single form of the metric, None where the list stands alone."""
        given = [name for name in ("metric", "metric_version", "config") if getattr(self, name)]
        if self.metrics and given:
            msg = (
                f"Source `{self.source}` has metrics and {' and '.join(given)} beside it; give version and config "
                "with each entry of metrics, or leave metrics out."
            )
            raise ConfigError(msg, given[0])
        if not given:
            return None
        return MetricChoice(self.metric or MetricChoice().name, self.metric_version, self.config)

    def _write_back(self) -> WriteBackSettings | None:
        given = self.write_back
        return None if given is None else _named("write_back", lambda: write_back_settings(given))

    def _mappings(self) -> Iterator[DeclaredMapping]:
        for place, mapping in enumerate(self.mappings):
            yield _named(f"mappings.{place}", partial(DeclaredMapping, **mapping.model_dump()))

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:  # noqa: ARG002 (Dagster's signature)
        """Build the source's definitions."""
        return build_evaluation_definitions(self.to_source())


def build_evaluation_definitions(source: Source, evaluators: Sequence[Evaluator] | None = None) -> dg.Definitions:
    """Build assets, checks, job, schedule and resource of a source.

    Args:
        source: the source's settings.
        evaluators: its metrics and their configs; resolved from the settings where left out.
    """
    evaluators = evaluators or evaluators_of(source)
    refuse_asset_settings(source)
    with warnings.catch_warnings():
        # Ours to know, not our users': Dagster marks parts of its API as beta, such as backfill policies and kinds.
        warnings.simplefilter("ignore", category=dg.BetaWarning)
        warnings.simplefilter("ignore", category=dg.PreviewWarning)
        return dg.Definitions.merge(
            dg.Definitions(
                assets=build_evaluation_assets(source, evaluators),
                asset_checks=build_gates(source, evaluators),
                resources={resource_key(source): StepaccDatabase(url_env=source.database_url_env)},
                sensors=[build_changes_sensor(source, evaluators), build_failure_sensor(source, evaluators)],
            ),
            build_automation(source, evaluators),
        )


def _named(setting: str, build: Callable[[], T]) -> T:
    """Build a part of a source, and name the setting it comes from where it is refused."""
    try:
        return build()
    except ConfigError as error:
        raise ConfigError(error.message, setting) from None


def _unannotated(
    partition_types: Sequence[PartitionType], setting: Unannotated | Mapping[PartitionType, Unannotated]
) -> dict[PartitionType, Unannotated]:
    if isinstance(setting, str):
        return dict.fromkeys(partition_types, setting)
    return {kind: setting.get(kind, "fail") for kind in partition_types}
