"""Settings of trace stores: which kind, where its tables are, and which projects are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, get_args

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from stepacc_core.errors import ConfigError

_NOTHING_ELSE = with_config(ConfigDict(extra="forbid"))
"""A setting that does not exist is refused when settings are built from plain values."""

TimeUnit = Literal["ns", "us", "ms", "s"]

_LONGEST_LOOK_BACK = 3_650


@_NOTHING_ELSE
@dataclass(frozen=True, slots=True)
class OtelSpansSettings:
    """stepacc's own table `stepacc.otel_spans`, in the database of the source."""

    kind: Literal["otel_spans"] = "otel_spans"

    @property
    def table_name(self) -> str:
        """The table the spans are read from, as Dagster's catalog shows it."""
        return "stepacc.otel_spans"


@_NOTHING_ELSE
@dataclass(frozen=True, slots=True)
class PhoenixSettings:
    """The database of an Arize Phoenix server.

    Args:
        kind: tells the stores apart.
        projects: names of the projects to read; none means all.
        schema: the Postgres schema of Phoenix, which its `PHOENIX_SQL_DATABASE_SCHEMA` sets.
        reread_ids: how many of the newest span ids are looked at again, for transactions that commit late.

    Raises:
        ConfigError: a setting is refused.
    """

    kind: Literal["phoenix"] = "phoenix"
    projects: tuple[str, ...] = ()
    schema: str = "public"
    reread_ids: int = 10_000

    @property
    def table_name(self) -> str:
        """The table the spans are read from, as Dagster's catalog shows it."""
        return f"{self.schema}.spans"

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        _refuse_outside("reread_ids", self.reread_ids, 0, 1_000_000)


@_NOTHING_ELSE
@dataclass(frozen=True, slots=True)
class MlflowSettings:
    """The backend database of an MLflow tracking server.

    Args:
        kind: tells the stores apart.
        experiments: names of the experiments to read; none means all that are not deleted.
        schema: the Postgres schema of MLflow.
        look_back_days: how old a trace may be, against the newest one, for a change of it to be noticed.

    Raises:
        ConfigError: a setting is refused.
    """

    kind: Literal["mlflow"] = "mlflow"
    experiments: tuple[str, ...] = ()
    schema: str = "public"
    look_back_days: int = 7

    @property
    def table_name(self) -> str:
        """The table the spans are read from, as Dagster's catalog shows it."""
        return f"{self.schema}.spans"

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        _refuse_outside("look_back_days", self.look_back_days, 1, _LONGEST_LOOK_BACK)


@_NOTHING_ELSE
@dataclass(frozen=True, slots=True)
class LangfuseV2Settings:
    """The database of a Langfuse server of version 2, the last that kept traces in Postgres.

    Args:
        kind: tells the stores apart.
        project_ids: ids of the projects to read; none means all.
        schema: the Postgres schema of Langfuse.
        look_back_days: how long ago a row may have been created, for a change of it to be noticed.
        reread_seconds: how much of the newest updates is looked at again, for transactions that commit late and for
            servers whose clocks differ.

    Raises:
        ConfigError: a setting is refused.
    """

    kind: Literal["langfuse_v2"] = "langfuse_v2"
    project_ids: tuple[str, ...] = ()
    schema: str = "public"
    look_back_days: int = 7
    reread_seconds: int = 300

    @property
    def table_name(self) -> str:
        """The table the spans are read from, as Dagster's catalog shows it."""
        return f"{self.schema}.observations"

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        _refuse_outside("look_back_days", self.look_back_days, 1, _LONGEST_LOOK_BACK)
        _refuse_outside("reread_seconds", self.reread_seconds, 0, 86_400)


@_NOTHING_ELSE
@dataclass(frozen=True, slots=True)
class TableColumns:
    """Which column of a table holds what; those left at None are not read.

    Args:
        trace_id: id of the trace; text, uuid or bytea, which becomes hex.
        span_id: id of the span, unique in its trace; likewise.
        name: name of the span.
        start_time: timestamp, or whole number since 1970 in the unit of `time_unit`.
        parent_span_id: id of the parent; null, empty and all zeros mean none.
        end_time: as `start_time`, of the same type.
        attributes: JSON object of attributes; json, jsonb or text.
        events: JSON list of events, each with `name`, a time and `attributes`.
        resource: JSON object of resource attributes.
        status: `OK`, `ERROR` or `UNSET`, OpenTelemetry's numbers or its long names.
        status_message: text.
        scope_name: name of the instrumentation.
        arrival: what tells new and changed rows: a number from a sequence, or the time of the last write. Without it
            the store cannot say what changed.
    """

    trace_id: str
    span_id: str
    name: str
    start_time: str
    parent_span_id: str | None = None
    end_time: str | None = None
    attributes: str | None = None
    events: str | None = None
    resource: str | None = None
    status: str | None = None
    status_message: str | None = None
    scope_name: str | None = None
    arrival: str | None = None

    def given(self) -> dict[str, str]:
        """Return the column by field, without those that are not read."""
        pairs = ((each.name, getattr(self, each.name)) for each in fields(self))
        return {name: column for name, column in pairs if column is not None}


@_NOTHING_ELSE
@dataclass(frozen=True, slots=True)
class TableSettings:
    """A table or view of one's own, one row a span.

    Args:
        table: its name.
        columns: which column holds what.
        kind: tells the stores apart.
        schema: its Postgres schema.
        time_unit: unit of times that are numbers.
        attribute_columns: columns that hold one attribute each, by the attribute's name, such as
            `gen_ai.tool.name: tool`. They come before what `columns.attributes` says.
        nested_attributes: whether dotted names were turned into objects in objects.
        project_column: column that tells agents apart, where the table has several.
        projects: its values that are read; none means all.
        reread_ids: as for Phoenix, where `columns.arrival` is a number.
        reread_seconds: as for Langfuse, where `columns.arrival` is a time.

    Raises:
        ConfigError: a setting is refused.
    """

    table: str
    columns: TableColumns
    kind: Literal["table"] = "table"
    schema: str = "public"
    time_unit: TimeUnit = "ns"
    attribute_columns: Mapping[str, str] = field(default_factory=dict)
    nested_attributes: bool = False
    project_column: str | None = None
    projects: tuple[str, ...] = ()
    reread_ids: int = 10_000
    reread_seconds: int = 300

    @property
    def table_name(self) -> str:
        """The table the spans are read from, as Dagster's catalog shows it."""
        return f"{self.schema}.{self.table}"

    def __post_init__(self) -> None:
        """Refuse settings that cannot work."""
        if self.time_unit not in get_args(TimeUnit):
            msg = f"time_unit of the table store is {self.time_unit!r}; use {', '.join(get_args(TimeUnit))}."
            raise ConfigError(msg)
        if self.projects and self.project_column is None:
            msg = "The table store lists projects and no project_column; name the column that holds them."
            raise ConfigError(msg)
        _refuse_outside("reread_ids", self.reread_ids, 0, 1_000_000)
        _refuse_outside("reread_seconds", self.reread_seconds, 0, 86_400)


StoreSettings = OtelSpansSettings | PhoenixSettings | MlflowSettings | LangfuseV2Settings | TableSettings
StoreKind = Literal["otel_spans", "phoenix", "mlflow", "langfuse_v2", "table"]

_ADAPTER: TypeAdapter[StoreSettings] = TypeAdapter(Annotated[StoreSettings, Field(discriminator="kind")])


def store_settings(values: Mapping[str, Any]) -> StoreSettings:
    """Build settings from plain values, as a YAML file has them.

    Raises:
        ConfigError: there is no such kind of store, or a setting is unknown, missing or refused; the sentence names it.
    """
    try:
        return _ADAPTER.validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        field_name = ".".join(str(part) for part in ("store", *first["loc"]))
        msg = f"`{field_name}`: {first['msg']}; given {first['input']!r}."
        raise ConfigError(msg) from None


def _refuse_outside(name: str, given: int, least: int, most: int) -> None:
    if not least <= given <= most:
        msg = f"{name} of the trace store is {given}; use {least} to {most}."
        raise ConfigError(msg)
