"""Asset checks of a score table, returned with its materialisation."""

from collections.abc import Mapping

import dagster as dg

from stepacc_dagster.tally import WindowTally

RESOLVED = "every_occurrence_has_expected_steps"
IN_RANGE = "scores_between_0_and_1"
COVERAGE = "coverage"

MISSING = "missing_expected_steps"
_NAMED = 20
"""Occurrences that a check's metadata names; the score table has them all."""


def check_specs(scores: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """Return the specs of the checks, none of them blocking: a score that is there stays readable."""
    return [
        dg.AssetCheckSpec(
            RESOLVED,
            asset=scores,
            description="Every trace and session of the run's partitions found a valid trajectory.",
        ),
        dg.AssetCheckSpec(IN_RANGE, asset=scores, description="Every score lies within 0 and 1."),
        dg.AssetCheckSpec(
            COVERAGE,
            asset=scores,
            description="Something was scored wherever there was something to score; the share is in the metadata.",
        ),
    ]


def check_results(scores: dg.AssetKey, tallies: Mapping[str, WindowTally]) -> list[dg.AssetCheckResult]:
    """Judge the partitions of a run together, since Dagster keeps one result per check and run."""
    return [_resolved(scores, tallies), _in_range(scores, tallies), _coverage(scores, tallies)]


def _resolved(scores: dg.AssetKey, tallies: Mapping[str, WindowTally]) -> dg.AssetCheckResult:
    unresolved = {key: dict(tally.failed) for key, tally in tallies.items() if tally.failed}
    named = [
        f"{key}: {entry.partition_type} {entry.partition_id} ({entry.code})"
        for key, tally in tallies.items()
        for entry in tally.failures
    ]
    count = sum(tally.failed.total() for tally in tallies.values())
    return dg.AssetCheckResult(
        asset_key=scores,
        check_name=RESOLVED,
        passed=not unresolved,
        severity=dg.AssetCheckSeverity.WARN,
        description="All occurrences resolved a trajectory." if not count else f"{count} occurrences failed.",
        metadata={
            "failed": count,
            "missing_expected_steps": sum(tally.failed[MISSING] for tally in tallies.values()),
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
