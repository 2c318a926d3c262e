"""What Dagster's catalog shows of a source: asset keys, specs, table schemas and lineage."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import dagster as dg
import sqlalchemy as sa
from dagster_shared.check import CheckError

from stepacc_core.errors import ConfigError
from stepacc_core.metrics import Manifest
from stepacc_core.metrics.manifest import AnnotationKey
from stepacc_dagster.column_lineage import canonical_lineage, metadata_lineage, score_lineage
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.partitions import partitions_of
from stepacc_dagster.sources import Source
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


_ANNOTATIONS: Mapping[AnnotationKey, tuple[str, str]] = {
    "expected_steps": ("annotations", "Which steps a trace, a session or a task should take"),
    "reference_trajectories": (
        "reference_trajectories",
        "Which ways through a trace, a session or a task are acceptable, and what is forbidden",
    ),
}
"""What the asset of the annotations of each key is called, and what they say."""


@dataclass(frozen=True, slots=True)
class MetricKeys:
    """The asset keys of one metric of a source: its scores, their metadata, and the annotations that it reads."""

    scores: dg.AssetKey
    metadata: dg.AssetKey
    annotations: dg.AssetKey

    @property
    def made(self) -> tuple[dg.AssetKey, dg.AssetKey]:
        """What a scoring step makes."""
        return self.scores, self.metadata


class SourceKeys:
    """The asset keys of a source and of its metrics."""

    def __init__(self, source: Source, evaluators: Iterable[Evaluator]) -> None:
        prefix = [*source.assets.key_prefix, source.name]
        self.evaluators = evaluators = tuple(evaluators)
        self.agent_traces = dg.AssetKey([*prefix, "agent_traces"])
        self.annotations = {
            key: dg.AssetKey([*prefix, name])
            for key, (name, _) in _ANNOTATIONS.items()
            if any(evaluator.annotation_key == key for evaluator in evaluators)
        }
        self.canonical_traces = dg.AssetKey([*prefix, "canonical_traces"])
        self.task_summaries = dg.AssetKey([*prefix, "task_summaries"])
        self.report = None if source.report_folder is None else dg.AssetKey([*prefix, "report"])
        self.written_back = None if source.write_back is None else dg.AssetKey([*prefix, "written_back"])
        self._metrics = {
            evaluator.name: MetricKeys(
                dg.AssetKey([*prefix, f"{evaluator.metric.manifest.identifier}_scores"]),
                dg.AssetKey([*prefix, f"{evaluator.metric.manifest.identifier}_metadata"]),
                self.annotations[evaluator.annotation_key],
            )
            for evaluator in evaluators
        }

    def of(self, metric: str) -> MetricKeys:
        """Return the keys of a metric, by its name."""
        return self._metrics[metric]

    def scored(self, metrics: Iterable[str] | None = None) -> list[dg.AssetKey]:
        """Return what is made when windows are scored by some metrics, all where none are named.

        What is derived from scores is among it.
        """
        chosen = self._metrics if metrics is None else metrics
        return [*(key for name in chosen for key in self._metrics[name].made), *self.derived]

    @property
    def derived(self) -> list[dg.AssetKey]:
        """What is made of the scores of all partitions: the summaries, and report and write-back where there are."""
        return [self.task_summaries, *(key for key in (self.report, self.written_back) if key is not None)]

    @property
    def made(self) -> list[dg.AssetKey]:
        """All that Dagster makes of the source."""
        return [self.canonical_traces, *self.scored()]


def score_op(source: Source, manifest: Manifest) -> str:
    """Return the name of the step that scores a source by a metric."""
    return f"{source.name}__{manifest.identifier}"


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
        *(
            dg.AssetSpec(
                asset,
                description=(
                    f"{_ANNOTATIONS[key][1]}; append-only revisions. `stepacc annotations import` writes them.\n\n"
                    "The scores that a revision made: `stepacc lineage annotation ID`, or by SQL the view "
                    "`stepacc.annotation_scores`. `stepacc annotations list --history` shows the ids."
                ),
                kinds={"postgres"},
                metadata={**table_metadata(tables.annotations), "annotation_key": key},
                **common_settings(source),
            )
            for key, asset in keys.annotations.items()
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
            metadata={**table_metadata(tables.otel_spans), **links},
            **common_settings(source),
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
        **common_settings(source),
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
        **common_settings(source),
        metadata={
            **table_metadata(tables.spans, tables.traces, tables.sessions),
            "dagster/column_lineage": canonical_lineage(keys.agent_traces, read_columns(source.store)),
            "traces_table": "stepacc.traces",
            "sessions_table": "stepacc.sessions",
        },
    )


def score_specs(source: Source, keys: SourceKeys, evaluator: Evaluator) -> list[dg.AssetSpec]:
    """Return the specs of the score table and of the metadata table beside it.

    A metric whose manifest requires no annotation does not hang on them.
    """
    manifest, own = evaluator.metric.manifest, keys.of(evaluator.name)
    annotations = own.annotations if manifest.annotation_key else None
    common = common_settings(source)
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
        **({"rows": dg.MetadataValue.json(list(manifest.family))} if manifest.family else {}),
    }
    steps_alone = manifest.needs_expected_steps
    scored = score_lineage(keys.canonical_traces, annotations, source.partition_types, steps_alone=steps_alone)
    explained = metadata_lineage(own.scores, keys.canonical_traces, annotations, steps_alone=steps_alone)
    return [
        dg.AssetSpec(
            own.scores,
            description=f"{manifest.description} One row per evaluation; read `stepacc.current_scores` for the latest."
            "\n\nBack from a score: `stepacc lineage trace ID` (or `session ID`) shows the trace, the annotation "
            "revision and the run behind it; by SQL, the view `stepacc.score_lineage` has a row for each score, and "
            "`stepacc.annotation_scores` one for each annotation and score.",
            metadata={**table_metadata(tables.scores), "dagster/column_lineage": scored, **identity},
            freshness_policy=_freshness(source),
            **shared,
        ),
        dg.AssetSpec(
            own.metadata,
            description="The reasons of each score, as the metric gives them: what it expected, what it found, and how "
            "it compared the two.\n\n`score_id` is the `id` of the score; `stepacc lineage trace ID` shows what the "
            "score was made from.",
            metadata={**table_metadata(tables.score_metadata), "dagster/column_lineage": explained, **identity},
            **shared,
        ),
    ]


def _freshness(source: Source) -> dg.FreshnessPolicy | None:
    hours = source.freshness_hours
    return None if hours is None else dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=hours))


def common_settings(source: Source) -> dict[str, Any]:
    """Return what the specs of all assets of a source share."""
    settings = source.assets
    return {
        "partitions_def": partitions_of(source),
        "group_name": settings.group_name or source.name,
        "owners": list(settings.owners),
        "tags": dict(settings.tags),
    }


def table_metadata(table: sa.Table, *beside: sa.Table) -> dict[str, Any]:
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
