"""What Dagster's catalog shows of a source: asset keys, specs, table schemas and lineage."""

from datetime import timedelta
from typing import Any

import dagster as dg
import sqlalchemy as sa
from dagster_shared.check import CheckError

from stepacc_core.errors import ConfigError
from stepacc_dagster.partitions import partitions_of
from stepacc_dagster.sources import Evaluator, Source
from stepacc_dagster.storage import tables

_SQL_TYPES: dict[type[sa.types.TypeEngine[Any]], str] = {
    sa.BigInteger: "bigint",
    sa.Integer: "integer",
    sa.Text: "text",
    sa.Boolean: "boolean",
    sa.Double: "double precision",
    sa.DateTime: "timestamptz",
    sa.LargeBinary: "bytea",
    sa.JSON: "jsonb",
}
"""Names as PostgreSQL shows them; the first that fits, so the narrower types come first."""


_READ_AS_STEPS = ("tool_name", "agent_name", "start_time_unix_nano")
_COPIED = ("trace_id", "span_id", "parent_span_id", "name", "start_time_unix_nano", "end_time_unix_nano", "status")
_RECOGNISED = ("kind", "tool_name", "tool_arguments", "tool_call_id", "agent_name", "tool_calls", "output")
"""Columns of the canonical spans that hold what a span says in its own way, and what a convention makes of it."""


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
    own = source.store.kind == "otel_spans"
    shared: dict[str, Any] = {**_common(source), "kinds": {"postgres"}}
    return [
        dg.AssetSpec(
            keys.agent_traces,
            description="Spans as the agent left them, by the start of their trace. "
            + ("`stepacc import traces` and `stepacc collect` land them." if own else "Never written by stepacc."),
            metadata=_table_metadata(tables.otel_spans) if own else {"dagster/table_name": source.store.table_name},
            **shared,
        ),
        dg.AssetSpec(
            keys.annotations,
            description=(
                "Which steps a trace, a session or a task should take; append-only revisions. "
                "Written by `stepacc annotations import`."
            ),
            metadata=_table_metadata(tables.annotations),
            **shared,
        ),
    ]


def canonical_spec(source: Source, keys: SourceKeys, code_version: str) -> dg.AssetSpec:
    """Return the spec of the canonical traces."""
    lineage = {column: [_dep(keys.agent_traces, column)] for column in _COPIED}
    for column in _RECOGNISED:
        lineage[column] = [_dep(keys.agent_traces, "attributes"), _dep(keys.agent_traces, "events")]
    return dg.AssetSpec(
        keys.canonical_traces,
        deps=[keys.agent_traces],
        description=(
            "Spans in one form whatever framework wrote them: kinds, bare tool names, arguments, embedded calls. "
            "One call is one span, and what the reader had to assume is kept as gaps of the trace."
        ),
        kinds={"postgres", "python"},
        code_version=code_version,
        automation_condition=source.assets.automation_condition,
        **_common(source),
        metadata={
            **_table_metadata(tables.spans),
            "dagster/column_lineage": dg.TableColumnLineage(deps_by_column=lineage),
            "traces_table": "stepacc.traces",
            "sessions_table": "stepacc.sessions",
        },
    )


def score_specs(source: Source, keys: SourceKeys, evaluator: Evaluator) -> list[dg.AssetSpec]:
    """Return the specs of the score table and of the metadata table beside it.

    A metric whose manifest requires no expected steps does not hang on the annotations.
    """
    manifest = evaluator.metric.manifest
    annotated = manifest.needs_expected_steps
    read = [_dep(keys.canonical_traces, column) for column in (_READ_AS_STEPS if annotated else _RECOGNISED)]
    expected = {
        "annotation_id": [_dep(keys.annotations, "id")],
        "reference_hash": [_dep(keys.annotations, "value")],
    }
    score_lineage = dg.TableColumnLineage(
        deps_by_column={
            "partition_id": [_dep(keys.canonical_traces, "trace_id")],
            "score": [*read, *([_dep(keys.annotations, "value")] if annotated else [])],
            "steps_hash": read,
            **(expected if annotated else {}),
        }
    )
    metadata_lineage = dg.TableColumnLineage(deps_by_column={"score_id": [_dep(keys.scores, "id")]})
    common = _common(source)
    shared: dict[str, Any] = {
        **common,
        "deps": [keys.canonical_traces, *([keys.annotations] if annotated else [])],
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
        "worked_example": manifest.metric_metadata.worked_example,
    }
    return [
        dg.AssetSpec(
            keys.scores,
            description=f"{manifest.description} One row per evaluation; read `stepacc.current_scores` for the latest.",
            metadata={**_table_metadata(tables.scores), "dagster/column_lineage": score_lineage, **identity},
            freshness_policy=_freshness(source),
            **shared,
        ),
        dg.AssetSpec(
            keys.metadata,
            description="The reasons of each score, as the metric gives them: what it expected, what it found, and how "
            "it compared the two.",
            metadata={**_table_metadata(tables.score_metadata), "dagster/column_lineage": metadata_lineage, **identity},
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


def _table_metadata(table: sa.Table) -> dict[str, Any]:
    columns = [
        dg.TableColumn(
            column.name,
            _sql_type(column),
            description=column.comment,
            constraints=dg.TableColumnConstraints(nullable=bool(column.nullable), unique=bool(column.unique)),
        )
        for column in table.columns
    ]
    return {
        "dagster/table_name": f"{table.schema}.{table.name}",
        "dagster/column_schema": dg.TableSchema(columns=columns),
    }


def _sql_type(column: sa.Column[Any]) -> str:
    return next(name for kind, name in _SQL_TYPES.items() if isinstance(column.type, kind))


def _dep(key: dg.AssetKey, column: str) -> dg.TableColumnDep:
    return dg.TableColumnDep(asset_key=key, column_name=column)
