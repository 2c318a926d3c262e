"""Asset checks of a score table, returned with its materialisation."""

from collections.abc import Mapping

import dagster as dg

from stepacc_core.metrics import Manifest
from stepacc_dagster.tally import WindowTally

RESOLVED = "every_occurrence_has_expected_steps"
NONE_FAILED = "no_occurrence_failed"
IN_RANGE = "scores_between_0_and_1"
COVERAGE = "coverage"

MISSING = "missing_expected_steps"
_NAMED = 20
"""Occurrences that a check's metadata names; the score table has them all."""


def check_specs(scores: dg.AssetKey, manifest: Manifest) -> list[dg.AssetCheckSpec]:
    """Return the specs of the checks, none of them blocking: a score that is there stays readable.

    The first is named by what a failure is: most are missing expected steps, for a metric that requires them.
    """
    said = "found a valid trajectory" if manifest.needs_expected_steps else "could be judged by the metric"
    return [
        dg.AssetCheckSpec(
            _failures_check(manifest),
            asset=scores,
            description=f"Every trace and session of the run's partitions {said}.",
        ),
        dg.AssetCheckSpec(IN_RANGE, asset=scores, description="Every score lies within 0 and 1."),
        dg.AssetCheckSpec(
            COVERAGE,
            asset=scores,
            description="Something was scored wherever there was something to score; the share is in the metadata.",
        ),
    ]


def check_results(
    scores: dg.AssetKey, manifest: Manifest, tallies: Mapping[str, WindowTally]
) -> list[dg.AssetCheckResult]:
    """Judge the partitions of a run together, since Dagster keeps one result per check and run."""
    return [_failures(scores, manifest, tallies), _in_range(scores, tallies), _coverage(scores, tallies)]


def _failures_check(manifest: Manifest) -> str:
    return RESOLVED if manifest.needs_expected_steps else NONE_FAILED


def _failures(scores: dg.AssetKey, manifest: Manifest, tallies: Mapping[str, WindowTally]) -> dg.AssetCheckResult:
    unresolved = {key: dict(tally.failed) for key, tally in tallies.items() if tally.failed}
    named = [
        f"{key}: {entry.partition_type} {entry.partition_id} ({entry.code})"
        for key, tally in tallies.items()
        for entry in tally.failures
    ]
    count = sum(tally.failed.total() for tally in tallies.values())
    return dg.AssetCheckResult(
        asset_key=scores,
        check_name=_failures_check(manifest),
        passed=not unresolved,
        severity=dg.AssetCheckSeverity.WARN,
        description="No occurrence failed." if not count else f"{count} occurrences failed.",
        metadata={
            "failed": count,
            **(
                {"missing_expected_steps": sum(tally.failed[MISSING] for tally in tallies.values())}
                if manifest.needs_expected_steps
                else {}
            ),
            "failed_by_partition": dg.MetadataValue.json(unresolved),
            "which": dg.MetadataValue.json(named[:_NAMED]),
        },
    )


def _in_range(scores: dg.AssetKey, tallies: Mapping[str, WindowTally]) -> dg.AssetCheckResult:
    outside = [f"{key}: {ident}" for key, tally in tallies.items() for ident in tally.out_of_range]
    return dg.AssetCheckResult(
        asset_key=scores,
        check_name=IN_RANGE,
        passed=not outside,
        severity=dg.AssetCheckSeverity.ERROR,
        metadata={"outside": len(outside), "which": dg.MetadataValue.json(outside[:_NAMED])},
    )


def _coverage(scores: dg.AssetKey, tallies: Mapping[str, WindowTally]) -> dg.AssetCheckResult:
    occurrences = sum(tally.occurrences for tally in tallies.values())
    scored = sum(tally.scored for tally in tallies.values())
    bare = sorted(key for key, tally in tallies.items() if tally.occurrences and not tally.scored)
    return dg.AssetCheckResult(
        asset_key=scores,
        check_name=COVERAGE,
        passed=not bare,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{scored} of {occurrences} occurrences have a score.",
        metadata={
            "occurrences": occurrences,
            "scored": scored,
            "skipped_unannotated": sum(tally.skipped for tally in tallies.values()),
            **({"coverage": scored / occurrences} if occurrences else {}),
            "partitions_without_a_score": dg.MetadataValue.json(bare),
        },
    )
