"""Where a trace store keeps its traces, and in which columns, for people who go and look."""

from dataclasses import dataclass
from typing import get_args

from stepacc_dagster.storage.tables import otel_spans
from stepacc_dagster.storage.type_names import type_name
from stepacc_dagster.stores import langfuse_v2_tables, mlflow_tables, phoenix_tables
from stepacc_dagster.stores.read_columns import ReadColumn, SpanField, side_by_side
from stepacc_dagster.stores.settings import (
    LangfuseV2Settings,
    MlflowSettings,
    OtelSpansSettings,
    PhoenixSettings,
    StoreSettings,
    TableSettings,
)
from stepacc_dagster.stores.table_columns import columns_read

_SAME: dict[str, tuple[SpanField, ...]] = {name: (name,) for name in get_args(SpanField)}
_OWN = tuple(
    ReadColumn(column.name, type_name(column), str(column.comment), _SAME.get(column.name, ()))
    for column in otel_spans.columns
)
"""The columns of stepacc's own table, which has the fields of a raw span."""


@dataclass(frozen=True, slots=True)
class StorePlace:
    """The place of traces in a store.

    Attributes:
        kind: the kind of store.
        tables: tables that hold traces and spans, with their schema.
        trace_column: the column, with table and schema, that holds the id of a trace as stepacc has it; of a table of
            one's own with uuid or bytea ids, as text.
        projects: the projects, experiments or whatever tells agents apart that are read; none means all.
    """

    kind: str
    tables: tuple[str, ...]
    trace_column: str
    projects: tuple[str, ...] = ()


def store_place(settings: StoreSettings) -> StorePlace:
    """Return where the store that settings describe keeps its traces."""
    match settings:
        case OtelSpansSettings():
            table = settings.table_name
            return StorePlace(settings.kind, (table,), f"{table}.trace_id")
        case PhoenixSettings():
            return _place(settings, ("traces", phoenix_tables.SPANS), "trace_id", settings.projects)
        case MlflowSettings():
            return _place(settings, ("trace_info", mlflow_tables.SPANS), "request_id", settings.experiments)
        case LangfuseV2Settings():
            return _place(settings, ("traces", langfuse_v2_tables.SPANS), "id", settings.project_ids)
        case _:
            return _place(settings, (settings.table,), settings.columns.trace_id, settings.projects)


def read_columns(settings: StoreSettings) -> tuple[ReadColumn, ...]:
    """Return the columns of traces and spans that are read in the store that settings describe.

    Columns of the table that `settings.table_name` names come first and keep their names; those of the tables beside
    it have their table before them, as in `traces.trace_id`.
    """
    match settings:
        case OtelSpansSettings():
            return _OWN
        case PhoenixSettings():
            return side_by_side(phoenix_tables.TABLES, phoenix_tables.SPANS)
        case MlflowSettings():
            return side_by_side(mlflow_tables.TABLES, mlflow_tables.SPANS)
        case LangfuseV2Settings():
            return side_by_side(langfuse_v2_tables.TABLES, langfuse_v2_tables.SPANS)
        case _:
            return columns_read(settings)


def _place(
    settings: PhoenixSettings | MlflowSettings | LangfuseV2Settings | TableSettings,
    tables: tuple[str, ...],
    column: str,
    projects: tuple[str, ...],
) -> StorePlace:
    qualified = tuple(f"{settings.schema}.{table}" for table in tables)
    return StorePlace(settings.kind, qualified, f"{qualified[0]}.{column}", projects)
