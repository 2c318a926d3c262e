"""Specs of what is made of all scores of a source: the summaries, the report, and what is written back."""

from collections.abc import Iterable

import dagster as dg

from stepacc_core.fingerprint import fingerprint
from stepacc_core.summaries import SUMMARIES_VERSION
from stepacc_dagster.catalog import SourceKeys, common_settings, table_metadata
from stepacc_dagster.column_lineage import summary_lineage
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.export.choice import Kind
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.summary_tables import task_summaries
from stepacc_dagster.writeback.settings import WriteBackSettings


def summaries_spec(source: Source, keys: SourceKeys, evaluators: Iterable[Evaluator]) -> dg.AssetSpec:
    """Return the spec of the task summaries: not partitioned, since the runs of a task lie in any windows."""
    settings = common_settings(source)
    del settings["partitions_def"]
    read = [keys.of(evaluator.name) for evaluator in evaluators]
    settings_shown = {"k": list(source.summaries.ks), "pass_thresholds": dict(source.summaries.pass_thresholds)}
    return dg.AssetSpec(
        keys.task_summaries,
        deps=[key for own in read for key in own.made],
        description=(
            "What the repeated runs of each task amount to: how many passed, with the Wilson 95 % interval, and the "
            "chances pass@k and pass^k. One row for each task, metric (or member of its family), version, config and "
            "reference revision; runs are never counted across these.\n\n"
            "Made of the current scores of all partitions. `stepacc summaries` shows them, and "
            "`stepacc lineage trace ID` what the scores of one run were made from."
        ),
        kinds={"postgres", "python"},
        code_version=f"{SUMMARIES_VERSION}-{fingerprint(settings_shown)[:12]}",
        automation_condition=source.assets.automation_condition,
        metadata={
            **table_metadata(task_summaries),
            "dagster/column_lineage": summary_lineage([own.scores for own in read], [own.metadata for own in read]),
            "settings": dg.MetadataValue.json(settings_shown),
        },
        **settings,
    )


def report_spec(source: Source, keys: SourceKeys, report: dg.AssetKey, evaluators: Iterable[Evaluator]) -> dg.AssetSpec:
    """Return the spec of the report: not partitioned, since it shows all windows."""
    settings = common_settings(source)
    del settings["partitions_def"]
    return dg.AssetSpec(
        report,
        deps=[key for evaluator in evaluators for key in keys.of(evaluator.name).made],
        description=(
            "One page of HTML that shows the scores of all windows: over time and by version, the steps that go wrong "
            "most often, tasks, failures, and the worst scores with the pictures of their alignments.\n\n"
            "`stepacc report` writes the same page where you say."
        ),
        kinds={"html", "python"},
        automation_condition=source.assets.automation_condition,
        metadata={"folder": dg.MetadataValue.path(str(source.report_folder))},
        **settings,
    )


def written_back_spec(
    source: Source, settings: WriteBackSettings, keys: SourceKeys, written_back: dg.AssetKey, kinds: Iterable[Kind]
) -> dg.AssetSpec:
    """Return the spec of the scores that are written back: not partitioned, since a score may be due in any window."""
    common = common_settings(source)
    del common["partitions_def"]
    return dg.AssetSpec(
        written_back,
        deps=[key for key in keys.scored() if key not in keys.derived],
        description=(
            "The current scores, written to where the traces are looked at, as far as they are not there yet. Scores "
            "of other versions and configs stay there as they are.\n\n"
            "`stepacc.write_backs` has a row for each score that is there."
        ),
        kinds={settings.kind, "python"},
        automation_condition=source.assets.automation_condition,
        metadata={
            "destination": dg.MetadataValue.url(settings.base),
            "metrics": dg.MetadataValue.json([str(kind) for kind in kinds]),
        },
        **common,
    )
