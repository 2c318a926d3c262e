"""A source: one agent's traces, how they are cut into partitions, and how they are scored."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, Literal, get_args

from stepacc_core.conventions.declared import DeclaredMapping
from stepacc_core.errors import ConfigError
from stepacc_core.fingerprint import fingerprint
from stepacc_core.model import PartitionType
from stepacc_core.policy import StepPolicy
from stepacc_core.reading import TASK_ID_ATTRIBUTES, ReadSettings
from stepacc_core.redaction import RedactionSettings
from stepacc_core.summaries import SummarySettings
from stepacc_dagster.asset_settings import AssetSettings
from stepacc_dagster.gate_settings import GateSettings
from stepacc_dagster.storage.settling import Settling
from stepacc_dagster.stores.settings import OtelSpansSettings, StoreSettings
from stepacc_dagster.trace_links import TraceUrl
from stepacc_dagster.writeback.settings import WriteBackSettings

Unannotated = Literal["fail", "skip"]
PartitionKind = Literal["daily", "hourly"]

_READER_VERSION = "3"
"""Version of the reading of traces; raised when the same spans would give other canonical spans."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class MetricChoice:
    """A metric a source is scored by: name, version (None: the newest) and config values."""

    name: str = "agent.step_accuracy"
    version: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """How often, and after how many seconds, a step that met a transient error is tried again."""

    max_retries: int = 3
    delay_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class SettleSettings:
    """When a trace is over: how long a whole one is quiet, and how long one without an ended root is waited for."""

    quiet_minutes: float = 10
    close_hours: float = 24

    def at(self, now: datetime) -> Settling:
        """Return what has settled at a moment, which has a time zone."""
        return Settling(now, timedelta(minutes=self.quiet_minutes), timedelta(hours=self.close_hours))


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """How the sensor that follows a source's changes works.

    Attributes:
        enabled: whether it runs unless somebody stops it in the UI; it is there in any case.
        interval_seconds: time between two looks.
        rescore: whether windows scored by another version or config of the metric are brought up to date too; if not,
            `stepacc backfill` does it.
        max_runs: runs asked for at a time; what is left waits for the next look.
    """

    enabled: bool = True
    interval_seconds: int = 30
    rescore: bool = True
    max_runs: int = 10


@dataclass(frozen=True, slots=True)
class Source:
    """The settings of one source.

    Args:
        name: prefix of the asset keys and value of the column `source`; letters, digits and underscores.
        start_date: first partition, as `YYYY-MM-DD`, UTC.
        partitions: length of the time windows.
        end_offset: 1 makes the window that is still running a partition too, 0 only closed ones.
        partition_types: what is scored, and what happens to occurrences nobody annotated: `fail` gives a failed row,
            `skip` no row; both are counted in the coverage.
        metric: the metric the source is scored by; `agent.step_accuracy` where neither this nor `metrics` is given.
        metrics: the metrics, where there are several; their names differ in the last part, which names their assets.
        task_id_attributes: attributes that hold the task id, tried after the built-in ones.
        mappings: conventions of the source's own, tried before the built-in ones.
        store: where the agent's spans are; `stepacc.otel_spans` where nothing is said.
        store_url_env: the environment variable that holds the URL of the store's database, where that is another one.
        trace_url: address of a trace in the store's own UI, with `{trace_id}` where its id goes; what Dagster and the
            commands show of a trace then leads there. None: no links.
        redaction: which secrets and personal data are redacted before anything is stored.
        step_policy: what of a trace is no step; part of the config hash, so another policy gives other scores.
        assets: how the source's assets fit into the project's catalog: key prefix, group, owners, tags, automation.
        database_url_env: the environment variable that holds the database URL; the URL itself is never a setting, so
            that it shows neither in YAML nor in the UI.
        settling: when a trace is over; one that still goes on is not scored.
        follow: how the sensor that follows the source's changes works.
        on_failure: `package.module:function` that is called with each failed run (`notifications.FailedRun`); None
            writes it to the log.
        freshness_hours: hours after which Dagster shows the scores as out of date where nothing was scored; None:
            never, as for an agent that is not at work every day.
        summaries: how repeated runs of a task are summarised.
        report_folder: folder in which an asset keeps the report of the source as `SOURCE.html`; None: there is no
            such asset.
        write_back: the server to which an asset writes the scores back; None: there is no such asset.
        gates: what the scores must meet, each told by an asset check.
        max_partitions_per_run: partitions that one run of a backfill takes; process start is most of a run's cost.

    Raises:
        ConfigError: a setting is refused; the sentence says what was given and what is allowed.
    """

    name: str
    start_date: str
    partitions: PartitionKind = "daily"
    end_offset: int = 1
    partition_types: Mapping[PartitionType, Unannotated] = field(default_factory=lambda: {"trace": "fail"})
    metric: MetricChoice | None = None
    metrics: tuple[MetricChoice, ...] = ()
    task_id_attributes: tuple[str, ...] = ()
    mappings: tuple[DeclaredMapping, ...] = ()
    store: StoreSettings = field(default_factory=OtelSpansSettings)
    store_url_env: str | None = None
    trace_url: str | None = None
    redaction: RedactionSettings = field(default_factory=RedactionSettings)
    step_policy: StepPolicy = field(default_factory=StepPolicy)
    assets: AssetSettings = field(default_factory=AssetSettings)
    database_url_env: str = "STEPACC_DATABASE_URL"
    retry: RetrySettings = field(default_factory=RetrySettings)
    settling: SettleSettings = field(default_factory=SettleSettings)
    follow: FollowSettings = field(default_factory=FollowSettings)
    on_failure: str | None = None
    freshness_hours: float | None = None
    summaries: SummarySettings = field(default_factory=SummarySettings)
    report_folder: str | None = None
    write_back: WriteBackSettings | None = None
    gates: tuple[GateSettings, ...] = ()
    max_partitions_per_run: int = 10

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        if not _NAME.fullmatch(self.name):
            msg = f"Source name {self.name!r} is not allowed; use a letter, then letters, digits and underscores."
            raise ConfigError(msg, "source")
        if not _is_date(self.start_date):
            msg = f"start_date {self.start_date!r} of source `{self.name}` is no date; write it as 2026-01-31."
            raise ConfigError(msg, "start_date")
        if not self.partition_types:
            msg = f"Source `{self.name}` scores nothing; list `trace`, `session` or both under partition_types."
            raise ConfigError(msg, "partition_types")
        self._refuse_metrics()
        _ = self.trace_links
        self._refuse_unknown("partitions", [self.partitions], get_args(PartitionKind))
        self._refuse_unknown("partition_types", self.partition_types, get_args(PartitionType))
        self._refuse_unknown("unannotated", self.partition_types.values(), get_args(Unannotated))
        self._refuse_unknown("end_offset", [self.end_offset], (0, 1))
        self._refuse_below("max_partitions_per_run", self.max_partitions_per_run, 1)
        self._refuse_below("retry.max_retries", self.retry.max_retries, 0)
        self._refuse_below("retry.delay_seconds", self.retry.delay_seconds, 0)
        self._refuse_below("settling.quiet_minutes", self.settling.quiet_minutes, 0)
        self._refuse_below("settling.close_hours", self.settling.close_hours, 0)
        self._refuse_below("follow.interval_seconds", self.follow.interval_seconds, 1)
        self._refuse_below("follow.max_runs", self.follow.max_runs, 1)
        if self.freshness_hours is not None and not self.freshness_hours > 0:
            msg = (
                f"freshness_hours of source `{self.name}` is {self.freshness_hours}; use more than 0, or leave it out."
            )
            raise ConfigError(msg, "freshness_hours")

    def _refuse_metrics(self) -> None:
        if self.metric and self.metrics:
            msg = (
                f"Source `{self.name}` has both metric and metrics; list {self.metric.name!r} under metrics with the "
                "others, or leave metrics out."
            )
            raise ConfigError(msg, "metrics")
        names = [choice.name for choice in self.metrics]
        for place, name in enumerate(names):
            if name in names[:place]:
                msg = f"Source `{self.name}` lists metric {name!r} twice; list each metric once, by one version."
                raise ConfigError(msg, f"metrics.{place}.name")

    def _refuse_unknown(self, name: str, given: Iterable[object], allowed: tuple[object, ...]) -> None:
        for value in given:
            if value not in allowed:
                msg = f"{name} of source `{self.name}` is {value!r}; use {' or '.join(map(repr, allowed))}."
                raise ConfigError(msg, name)

    def _refuse_below(self, name: str, given: float, least: int) -> None:
        if given < least:
            msg = f"{name} of source `{self.name}` is {given}; use {least} or more."
            raise ConfigError(msg, name)

    @property
    def choices(self) -> tuple[MetricChoice, ...]:
        """The metrics the source is scored by, at least one, in the order given."""
        return self.metrics or (self.metric or MetricChoice(),)

    @property
    def start(self) -> datetime:
        """The start of the first partition."""
        return datetime.fromisoformat(self.start_date)

    @property
    def trace_links(self) -> TraceUrl | None:
        """What gives the link to a trace in the UI of its store; None where the source names no such address."""
        return None if self.trace_url is None else TraceUrl(self.trace_url)

    @property
    def read_settings(self) -> ReadSettings:
        """How the spans of the source are read."""
        return ReadSettings(task_id_attributes=(*TASK_ID_ATTRIBUTES, *self.task_id_attributes), mappings=self.mappings)


def scoring_rules(source: Source) -> str:
    """Return a fingerprint of the settings that say what is scored, and when it has settled."""
    kinds = sorted(source.partition_types.items())
    return fingerprint([kinds, source.settling.quiet_minutes, source.settling.close_hours])[:12]


def reader_version(source: Source) -> str:
    """Return the code version of a source's canonical traces: that of the reading, and a hash of its settings.

    What an ingest redacts is among them, but for spans in stepacc's own table, which are redacted as they land.
    """
    settings = dataclasses.asdict(source.read_settings)
    if source.store.kind != "otel_spans":
        settings["redaction"] = dataclasses.asdict(source.redaction)
    return f"{_READER_VERSION}-{fingerprint(settings)[:12]}"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return _DATE.fullmatch(text) is not None  # not 20260131 or 2026-W05, of which Dagster makes nothing
