"""Which column is made of which, from the store's columns to those of the scores.

An asset of several tables shows the columns of one by their names, those of the others with their table before them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import dagster as dg

from stepacc_core.model import PartitionType
from stepacc_dagster.stores.read_columns import ReadColumn, SpanField

Deps = list[dg.TableColumnDep]

_NAMED: tuple[SpanField, ...] = ("name", "scope_name", "attributes", "events")
_WRITTEN: tuple[SpanField, ...] = ("attributes", "events")
"""What a convention makes kinds and names of, and what all else."""

_CANONICAL: Mapping[str, tuple[SpanField, ...]] = {
    "trace_id": ("trace_id",),
    "span_id": ("span_id",),
    "position": ("start_time_unix_nano", "name", "span_id"),
    "kind": _NAMED,
    "name": ("name",),
    "parent_span_id": ("parent_span_id",),
    "start_time_unix_nano": ("start_time_unix_nano",),
    "end_time_unix_nano": ("end_time_unix_nano",),
    "status": ("status",),
    "tool_name": _NAMED,
    "tool_full_name": _NAMED,
    "tool_arguments": _WRITTEN,
    "tool_call_id": _WRITTEN,
    "agent_name": _NAMED,
    "tool_calls": _WRITTEN,
    "calls_announced": _NAMED,
    "output": _WRITTEN,
    "input_tokens": _WRITTEN,
    "output_tokens": _WRITTEN,
    "cost_usd": _WRITTEN,
    "traces.trace_id": ("trace_id",),
    "traces.session_id": ("attributes",),
    "traces.task_id": ("attributes", "resource"),
    "traces.window_key": ("start_time_unix_nano",),
    "traces.start_time_unix_nano": ("start_time_unix_nano",),
    "traces.end_time_unix_nano": ("end_time_unix_nano",),
    "traces.root_span_id": ("span_id", "parent_span_id"),
    "traces.status": ("status",),
    "traces.settled": ("parent_span_id", "end_time_unix_nano"),
    "traces.span_count": ("span_id",),
    "traces.gaps": _NAMED,
    "sessions.session_id": ("attributes",),
    "sessions.task_id": ("attributes", "resource"),
    "sessions.window_key": ("start_time_unix_nano",),
    "sessions.first_trace_id": ("trace_id", "start_time_unix_nano"),
    "sessions.start_time_unix_nano": ("start_time_unix_nano",),
    "sessions.end_time_unix_nano": ("end_time_unix_nano",),
    "sessions.trace_count": ("trace_id",),
}
"""The fields of raw spans behind each column of the canonical traces."""

_STEPS = (
    "kind",
    "name",
    "parent_span_id",
    "start_time_unix_nano",
    "tool_name",
    "agent_name",
    "tool_calls",
    "calls_announced",
)
"""Columns of the spans that steps are collected from."""
_ALL = tuple(column for column in _CANONICAL if "." not in column)
"""Columns of the spans, any of which a metric may read."""

_SUMMARISED: Mapping[str, tuple[str, ...]] = {
    **{
        name: (name,)
        for name in (
            "partition_type",
            "task_id",
            "metric",
            "metric_version",
            "config_hash",
            "annotation_id",
            "reference_hash",
        )
    },
    "n": ("id",),
    **dict.fromkeys(("n_scored", "n_failed", "n_not_applicable"), ("status",)),
    **dict.fromkeys(("passes", "pass_rate", "pass_rate_low", "pass_rate_high", "pass_at_k", "pass_hat_k"), ("score",)),
    "mean": ("score",),
}
"""The columns of scores behind each column of the task summaries."""

_OF_BOTH = ("status", "code", "reason", "message", "score", "correct_steps", "edit_distance")
_IDS: Mapping[PartitionType, str] = {"trace": "traces.trace_id", "session": "sessions.session_id"}


def canonical_lineage(traces: dg.AssetKey, read: Sequence[ReadColumn]) -> dg.TableColumnLineage:
    """Return what the columns of the canonical traces are made of.

    Args:
        traces: the asset of the store.
        read: the columns that are read there.
    """
    found = {
        column: [dg.TableColumnDep(traces, each.name) for each in read if not set(fields).isdisjoint(each.fields)]
        for column, fields in _CANONICAL.items()
    }
    return dg.TableColumnLineage({column: deps for column, deps in found.items() if deps})


def score_lineage(
    canonical: dg.AssetKey,
    annotations: dg.AssetKey | None,
    partition_types: Collection[PartitionType],
    *,
    steps_alone: bool,
) -> dg.TableColumnLineage:
    """Return what the columns of the scores are made of.

    Args:
        canonical: the asset of the canonical traces.
        annotations: the asset of the annotations; None for a metric that requires none.
        partition_types: what is scored.
        steps_alone: whether the metric reads no more of the spans than their steps.
    """
    read, value = _read(canonical, steps_alone=steps_alone), _said(annotations, "value")
    tables = [_IDS[kind].partition(".")[0] for kind in partition_types]
    homes = {name: _deps(canonical, (f"{table}.{name}" for table in tables)) for name in ("window_key", "task_id")}
    return dg.TableColumnLineage(
        {
            "partition_id": _deps(canonical, (_IDS[kind] for kind in partition_types)),
            "session_id": _deps(canonical, ["traces.session_id"]),
            **homes,
            "steps_hash": read,
            "total_steps": value or read,
            **{column: [*read, *value] for column in _OF_BOTH},
            **(
                {"annotation_id": _said(annotations, "id"), "reference_hash": value, "expected_from": value}
                if annotations
                else {}
            ),
        }
    )


def metadata_lineage(
    scores: dg.AssetKey, canonical: dg.AssetKey, annotations: dg.AssetKey | None, *, steps_alone: bool
) -> dg.TableColumnLineage:
    """Return what the columns of the metadata of scores are made of; all but `scores` is as in `score_lineage`."""
    said = [*_read(canonical, steps_alone=steps_alone), *_said(annotations, "id", "revision", "value")]
    return dg.TableColumnLineage({"score_id": _deps(scores, ["id"]), "metadata": said})


def summary_lineage(scores: Iterable[dg.AssetKey], metadata: Iterable[dg.AssetKey]) -> dg.TableColumnLineage:
    """Return what the columns of the task summaries are made of, over the scores and the metadata of all metrics."""
    scores, metadata = list(scores), list(metadata)
    said = [dep for asset in metadata for dep in _deps(asset, ["metadata"])]
    return dg.TableColumnLineage(
        {
            **{column: [dep for asset in scores for dep in _deps(asset, read)] for column, read in _SUMMARISED.items()},
            **dict.fromkeys(("verdicts", "unconfirmed_references", "assumptions"), said),
        }
    )


def _read(canonical: dg.AssetKey, *, steps_alone: bool) -> Deps:
    return _deps(canonical, _STEPS if steps_alone else _ALL)


def _said(annotations: dg.AssetKey | None, *columns: str) -> Deps:
    return [] if annotations is None else _deps(annotations, columns)


def _deps(asset: dg.AssetKey, columns: Iterable[str]) -> Deps:
    return [dg.TableColumnDep(asset, column) for column in columns]
