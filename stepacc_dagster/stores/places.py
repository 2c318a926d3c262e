"""Where a trace store keeps its traces, for people who go and look."""

from dataclasses import dataclass

from stepacc_dagster.stores.settings import (
    LangfuseV2Settings,
    MlflowSettings,
    OtelSpansSettings,
    PhoenixSettings,
    StoreSettings,
)


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
            return _place(settings.kind, settings.schema, ("traces", "spans"), "trace_id", settings.projects)
        case MlflowSettings():
            return _place(settings.kind, settings.schema, ("trace_info", "spans"), "request_id", settings.experiments)
        case LangfuseV2Settings():
            return _place(settings.kind, settings.schema, ("traces", "observations"), "id", settings.project_ids)
        case _:
            column = settings.columns.trace_id
            return _place(settings.kind, settings.schema, (settings.table,), column, settings.projects)


def _place(kind: str, schema: str, tables: tuple[str, ...], column: str, projects: tuple[str, ...]) -> StorePlace:
    qualified = tuple(f"{schema}.{table}" for table in tables)
    return StorePlace(kind, qualified, f"{qualified[0]}.{column}", projects)
