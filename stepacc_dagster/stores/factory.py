"""Trace stores by their settings."""

import sqlalchemy as sa

from stepacc_dagster.stores.base import TraceStore
from stepacc_dagster.stores.custom_table import TableStore
from stepacc_dagster.stores.langfuse_v2 import LangfuseV2Store
from stepacc_dagster.stores.mlflow import MlflowStore
from stepacc_dagster.stores.otel_spans import OtelSpansStore
from stepacc_dagster.stores.phoenix import PhoenixStore
from stepacc_dagster.stores.settings import (
    LangfuseV2Settings,
    MlflowSettings,
    OtelSpansSettings,
    PhoenixSettings,
    StoreSettings,
)


def build_store(settings: StoreSettings, engine: sa.Engine, source: str) -> TraceStore:
    """Return the store that settings describe; nothing is connected yet.

    Args:
        settings: of one kind of store.
        engine: over the database that holds its tables.
        source: name of the source whose traces and annotations these are.
    """
    match settings:
        case OtelSpansSettings():
            return OtelSpansStore(engine, source)
        case PhoenixSettings():
            return PhoenixStore(engine, source, settings)
        case MlflowSettings():
            return MlflowStore(engine, source, settings)
        case LangfuseV2Settings():
            return LangfuseV2Store(engine, source, settings)
        case _:
            return TableStore(engine, source, settings)
