"""What Dagster's catalog shows of a source: asset keys, specs, table schemas and lineage."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import dagster as dg
import sqlalchemy as sa
from dagster_shared.check import CheckError

from stepacc_core.errors import ConfigError
from stepacc_dagster.column_lineage import canonical_lineage, metadata_lineage, score_lineage
from stepacc_dagster.partitions import partitions_of
from stepacc_dagster.sources import Evaluator, Source
from stepacc_dagster.storage import tables
from stepacc_dagster.storage.type_names import type_name
from stepacc_dagster.stores.places import read_columns, store_place
from stepacc_dagster.stores.settings import StoreKind

_STORES: Mapping[StoreKind, tuple[str, str]] = {
    "phoenix": ("phoenix", "Arize Phoenix"),
    "mlflow": ("mlflow", "MLflow"),
    "langfuse_v2": ("langfuse", "Langfuse 2"),
    "table": ("table", "a table of your own"),
}
"""The kind of each store but our own, by which Dagster finds its icon (of Phoenix it has none), and what people call
it."""


class SourceKeys:
    """The asset keys of a source and its metric."""

    def __init__(self, source: Source, evaluator: Evaluator) -> None:
        prefix = [*source.assets.key_prefix, source.name]
        metric = evaluator.metric.manifest.identifier
        self.agent_traces = dg.AssetKey([*prefix, "agent_traces"])
        self.annotations = dg.AssetKey([*prefix, "annotations"])
        self.canonical_traces = dg.AssetKey([*prefix, "canonical_traces"])
        self.scores = dg.AssetKey([*prefix, f"{metric}_scores"])
        self.metadata = dg.AssetKey([*prefix, f"{metric}_metadata"])


def refuse_asset_settings(source: Source) -> None:
    """Refuse what Dagster takes for no group, owner or tag.

    Raises:
        ConfigError: names the setting and gives Dagster's reason.
    """
    settings = source.assets
    for name in ("group_name", "owners", "tags", "automation_condition"):
        try:
            dg.AssetSpec(source.name, **{name: getattr(settings, name)})
        except (dg.DagsterError, CheckError) as error:
            msg = f"{name} of source `{source.name}` is refused by Dagster: {' '.join(str(error).split())}"
            raise ConfigError(msg, f"assets.{name}") from None


def external_specs(source: Source, keys: SourceKeys) -> list[dg.AssetSpec]:
    """Return the specs of what stepacc reads and others write: agents leave traces, people annotate."""
    return [
        _traces_spec(source, keys),
        dg.AssetSpec(
            keys.annotations,
            description=(
                "Which steps a trace, a session or a task should take; append-only revisions. "
                "`stepacc annotations import` writes them.\n\n"
                "The scores that a revision made: `stepacc lineage annotation ID`, or by SQL the view "
                "`stepacc.annotation_scores`. `stepacc annotations list --history` shows the ids."
            ),
            kinds={"postgres"},
            metadata=_table_metadata(tables.annotations),
            **_common(source),
        ),
    ]


def _traces_spec(source: Source, keys: SourceKeys) -> dg.AssetSpec:
    place = store_place(source.store)
    links: dict[str, Any] = {}
    if source.trace_links:
        links = {"trace_url": source.trace_links.template, "store_ui": dg.MetadataValue.url(source.trace_links.home)}
    way_back = "`stepacc lineage trace ID` shows a trace, where it is kept, and all scores that were made of it."
    if source.store.kind == "otel_spans":
        return dg.AssetSpec(
            keys.agent_traces,
            description="Spans as the agent left them, by the start of their trace. "
            f"`stepacc import traces` and `stepacc collect` land them.\n\n{way_back}",
            kinds={"postgres"},
            metadata={**_table_metadata(tables.otel_spans), **links},
            **_common(source),
        )
    kind, name = _STORES[source.store.kind]
    columns = [
        dg.TableColumn(column.name, column.type, description=column.description)
        for column in read_columns(source.store)
    ]
    return dg.AssetSpec(
        keys.agent_traces,
        description=f"Spans as the agent left them in {name}, by the start of their trace. stepacc only reads them; "
        f"the columns shown are those it reads.\n\n{way_back}",
        kinds={"postgres", kind},
        metadata={
            "dagster/table_name": source.store.table_name,
            "dagster/column_schema": dg.TableSchema(columns),
            "tables": ", ".join(place.tables),
            "trace_ids_in": place.trace_column,
            "projects": ", ".join(place.projects) or "all",
            "database_url_env": source.store_url_env or source.database_url_env,
            **links,
        },
        **_common(source),
    )


def canonical_spec(source: Source, keys: SourceKeys, code_version: str) -> dg.AssetSpec:
    """Return the spec of the canonical traces."""
    return dg.AssetSpec(
        keys.canonical_traces,
        deps=[keys.agent_traces],
        description=(
            "Spans in one form whatever framework wrote them: kinds, bare tool names, arguments, embedded calls. "
            "One call is one span, and what the reader had to assume is kept as gaps of the trace.\n\n"
            "Traces and spans keep the ids that their store gave them: `stepacc lineage trace ID` leads back to it."
        ),
        kinds={"postgres", "python"},
        code_version=code_version,
        automation_condition=source.assets.automation_condition,
        **_common(source),
        metadata={
            **_table_metadata(tables.spans, tables.traces, tables.sessions),
            "dagster/column_lineage": canonical_lineage(keys.agent_traces, read_columns(source.store)),
            "traces_table": "stepacc.traces",
            "sessions_table": "stepacc.sessions",
        },
    )


def score_specs(source: Source, keys: SourceKeys, evaluator: Evaluator) -> list[dg.AssetSpec]:
    """Return the specs of the score table and of the metadata table beside it.

    A metric whose manifest requires no expected steps does not hang on the annotations.
    """
    manifest = evaluator.metric.manifest
    annotations = keys.annotations if manifest.needs_expected_steps else None
    common = _common(source)
    shared: dict[str, Any] = {
        **common,
        "deps": [keys.canonical_traces, *([annotations] if annotations else [])],
        "kinds": {"postgres", "python"},
        "code_version": evaluator.code_version,
        "automation_condition": source.assets.automation_condition,
        "tags": {"stepacc/metric": manifest.name, **common["tags"]},
    }
    identity = {
        "metric": manifest.name,
        "metric_version": manifest.version,
        "config_hash": evaluator.config_hash,
        "config": dg.MetadataValue.json(evaluator.config.model_dump(mode="json")),
        "score_semantics": manifest.metric_metadata.score_semantics,
        "methodology": dg.MetadataValue.md("\n".join(f"- {line}" for line in manifest.metric_metadata.methodology)),
        "worked_example": manifest.metric_metadata.worked_example,
    }
    scored = score_lineage(keys.canonical_traces, annotations, source.partition_types)
    explained = metadata_lineage(keys.scores, keys.canonical_traces, annotations)
    return [
        dg.AssetSpec(
            keys.scores,
            description=f"{manifest.description} One row per evaluation; read `stepacc.current_scores` for the latest."
            "\n\nBack from a score: `stepacc lineage trace ID` (or `session ID`) shows the trace, the annotation "
            "revision and the run behind it; by SQL, the view `stepacc.score_lineage` has a row for each score, and "
            "`stepacc.annotation_scores` one for each annotation and score.",
            metadata={**_table_metadata(tables.scores), "dagster/column_lineage": scored, **identity},
            freshness_policy=_freshness(source),
            **shared,
        ),
        dg.AssetSpec(
            keys.metadata,
            description="The reasons of each score, as the metric gives them: what it expected, what it found, and how "
            "it compared the two.\n\n`score_id` is the `id` of the score; `stepacc lineage trace ID` shows what the "
            "score was made from.",
            metadata={**_table_metadata(tables.score_metadata), "dagster/column_lineage": explained, **identity},
            **shared,
        ),
    ]


def _freshness(source: Source) -> dg.FreshnessPolicy | None:
    hours = source.freshness_hours
    return None if hours is None else dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=hours))


def _common(source: Source) -> dict[str, Any]:
    """Return what the specs of all assets of a source share."""
    settings = source.assets
    return {
        "partitions_def": partitions_of(source),
        "group_name": settings.group_name or source.name,
        "owners": list(settings.owners),
        "tags": dict(settings.tags),
    }


def _table_metadata(table: sa.Table, *beside: sa.Table) -> dict[str, Any]:
    """Return what names a table and describes its columns, and those of the tables beside it with their table."""
    columns = [
        *_columns(table, ""),
        *(column for other in beside for column in _columns(other, f"{other.name}.")),
    ]
    return {
        "dagster/table_name": f"{table.schema}.{table.name}",
        "dagster/column_schema": dg.TableSchema(columns=columns),
    }


def _columns(table: sa.Table, prefix: str) -> list[dg.TableColumn]:
    return [
        dg.TableColumn(
            f"{prefix}{column.name}",
            type_name(column),
            description=column.comment,
            constraints=dg.TableColumnConstraints(nullable=bool(column.nullable), unique=bool(column.unique)),
        )
        for column in table.columns
    ]
