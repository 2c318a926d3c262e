"""Asset checks of a score table, returned with its materialisation.

Dagster keeps one result of a check and run, not one of each partition: a result speaks of the partitions that were
scored together, and says which.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from stepacc_core.errors import FailureCode
from stepacc_core.metrics import Manifest
from stepacc_core.metrics.manifest import AnnotationKey
from stepacc_dagster.partitions import in_words
from stepacc_dagster.reference_checks import reference_check_results, reference_check_specs
from stepacc_dagster.tally import WindowTally

RESOLVED = "every_occurrence_has_expected_steps"
REFERRED = "every_occurrence_has_references"
NONE_FAILED = "no_occurrence_failed"
IN_RANGE = "scores_between_0_and_1"
COVERAGE = "coverage"

_MISSING: Mapping[AnnotationKey | None, FailureCode] = {
    "expected_steps": FailureCode.MISSING_EXPECTED_STEPS,
    "reference_trajectories": FailureCode.MISSING_REFERENCES,
}
"""The code of an occurrence that nobody annotated, by the annotation that a metric requires."""
_NAMED_BY_KEY: Mapping[AnnotationKey | None, tuple[str, str]] = {
    "expected_steps": (RESOLVED, "found a valid trajectory"),
    "reference_trajectories": (REFERRED, "found valid references"),
    None: (NONE_FAILED, "could be judged by the metric"),
}
"""What the check of failures is called, and what it says, by the annotation that a metric requires."""
_OF_ONE_RUN = "It speaks of the partitions of the last run alone, which its result names."
_NAMED = 20
"""Occurrences that a check's metadata names; the score table has them all."""
_DIGITS = 4


def check_specs(scores: dg.AssetKey, manifest: Manifest) -> list[dg.AssetCheckSpec]:
    """Return the specs of the checks, none of them blocking: a score that is there stays readable.

    The first is named by what a failure is: most are missing annotations, for a metric that requires them.
    """
    name, said = _NAMED_BY_KEY[manifest.annotation_key]
    return [
        dg.AssetCheckSpec(
            name,
            asset=scores,
            description=f"Every trace and session {said}. {_OF_ONE_RUN}",
        ),
        dg.AssetCheckSpec(IN_RANGE, asset=scores, description=f"Every score lies within 0 and 1. {_OF_ONE_RUN}"),
        dg.AssetCheckSpec(
            COVERAGE,
            asset=scores,
            description=f"Something was scored in each partition that has something to score. {_OF_ONE_RUN}",
        ),
        *(reference_check_specs(scores, _OF_ONE_RUN) if _has_references(manifest) else []),
    ]


def check_results(
    scores: dg.AssetKey, manifest: Manifest, tallies: Mapping[str, WindowTally]
) -> list[dg.AssetCheckResult]:
    """Judge the partitions of a run, at least one, together."""
    found = [_failures(scores, manifest, tallies), _in_range(scores, tallies), _coverage(scores, tallies)]
    return found + (reference_check_results(scores, tallies) if _has_references(manifest) else [])


def _has_references(manifest: Manifest) -> bool:
    return manifest.annotation_key == "reference_trajectories"


def _failures(scores: dg.AssetKey, manifest: Manifest, tallies: Mapping[str, WindowTally]) -> dg.AssetCheckResult:
    unresolved = {key: dict(tally.failed) for key, tally in tallies.items() if tally.failed}
    named = [
        f"{key}: {entry.partition_type} {entry.partition_id} ({entry.code})"
        for key, tally in tallies.items()
        for entry in tally.failures
    ]
    count = sum(tally.failed.total() for tally in tallies.values())
    code = _MISSING.get(manifest.annotation_key)
    missing = {code.value: sum(tally.failed[code] for tally in tallies.values())} if code else {}
    said = f"{count} of {_occurrences(tallies)} occurrences failed" if count else "No occurrence failed"
    return dg.AssetCheckResult(
        asset_key=scores,
        check_name=_NAMED_BY_KEY[manifest.annotation_key][0],
        passed=not unresolved,
        severity=dg.AssetCheckSeverity.WARN,
        description=_of(said, tallies),
        metadata={
            **_about(tallies),
            "failed": count,
            **missing,
            **({"failed_by_partition": dg.MetadataValue.json(unresolved)} if unresolved else {}),
            **_listed("which", named[:_NAMED]),
        },
    )


def _in_range(scores: dg.AssetKey, tallies: Mapping[str, WindowTally]) -> dg.AssetCheckResult:
    outside = [f"{key}: {ident}" for key, tally in tallies.items() for ident in tally.out_of_range]
    scored = sum(tally.scored for tally in tallies.values())
    said = f"{len(outside)} of {scored} scores lie outside 0 to 1" if outside else "Every score lies within 0 and 1"
    return dg.AssetCheckResult(
        asset_key=scores,
        check_name=IN_RANGE,
        passed=not outside,
        severity=dg.AssetCheckSeverity.ERROR,
        description=_of(said, tallies),
        metadata={**_about(tallies), "outside": len(outside), **_listed("which", outside[:_NAMED])},
    )


def _coverage(scores: dg.AssetKey, tallies: Mapping[str, WindowTally]) -> dg.AssetCheckResult:
    occurrences = _occurrences(tallies)
    scored = sum(tally.scored for tally in tallies.values())
    bare = sorted(key for key, tally in tallies.items() if tally.occurrences and not tally.scored)
    return dg.AssetCheckResult(
        asset_key=scores,
        check_name=COVERAGE,
        passed=not bare,
        severity=dg.AssetCheckSeverity.WARN,
        description=_of(f"{scored} of {occurrences} occurrences have a score", tallies),
        metadata={
            **_about(tallies),
            "occurrences": occurrences,
            "scored": scored,
            "skipped_unannotated": sum(tally.skipped for tally in tallies.values()),
            **({"coverage": round(scored / occurrences, _DIGITS)} if occurrences else {}),
            **_listed("partitions_without_a_score", bare),
        },
    )


def _occurrences(tallies: Mapping[str, WindowTally]) -> int:
    return sum(tally.occurrences for tally in tallies.values())


def _of(said: str, tallies: Mapping[str, WindowTally]) -> str:
    return f"{said}, in {in_words(tallies)}."


def _about(tallies: Mapping[str, WindowTally]) -> dict[str, Any]:
    return {"partitions": in_words(tallies)}


def _listed(name: str, entries: Sequence[str]) -> dict[str, Any]:
    """Return entries as metadata; nothing where there are none."""
    return {name: dg.MetadataValue.json(list(entries))} if entries else {}
