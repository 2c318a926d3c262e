"""Asset checks of a metric that measures against reference trajectories, beside those of every metric."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import dagster as dg

from stepacc_dagster.partitions import in_words
from stepacc_dagster.tally import WindowTally

NOTHING_FORBIDDEN = "no_forbidden_step"
ALL_CONFIRMED = "references_confirmed"
_NAMED = 20
"""Occurrences that a check's metadata names; the score table has them all."""


def reference_check_specs(scores: dg.AssetKey, of_one_run: str) -> list[dg.AssetCheckSpec]:
    """Return the specs of the checks; `of_one_run` says of what each result speaks."""
    return [
        dg.AssetCheckSpec(
            NOTHING_FORBIDDEN, asset=scores, description=f"No run took a step that its task forbids. {of_one_run}"
        ),
        dg.AssetCheckSpec(
            ALL_CONFIRMED,
            asset=scores,
            description="Every reference in use was confirmed by a person; one that is not is a guess, and what was "
            f"measured against it too. {of_one_run}",
        ),
    ]


def reference_check_results(scores: dg.AssetKey, tallies: Mapping[str, WindowTally]) -> list[dg.AssetCheckResult]:
    """Judge the partitions of a run, at least one, together."""
    return [_forbidden(scores, tallies), _unconfirmed(scores, tallies)]


def _forbidden(scores: dg.AssetKey, tallies: Mapping[str, WindowTally]) -> dg.AssetCheckResult:
    count = sum(tally.family.forbidden for tally in tallies.values())
    named = [f"{key}: {seen}" for key, tally in tallies.items() for seen in tally.family.forbidden_seen]
    said = f"A forbidden step was seen in {count} of {_scored(tallies)} runs" if count else "No forbidden step was seen"
    return dg.AssetCheckResult(
        asset_key=scores,
        check_name=NOTHING_FORBIDDEN,
        passed=not count,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{said}, in {in_words(tallies)}.",
        metadata={"partitions": in_words(tallies), "forbidden": count, **_listed("which", named[:_NAMED])},
    )


def _unconfirmed(scores: dg.AssetKey, tallies: Mapping[str, WindowTally]) -> dg.AssetCheckResult:
    count = sum(tally.family.resting_on_unconfirmed for tally in tallies.values())
    names: Counter[str] = Counter()
    for tally in tallies.values():
        names.update(tally.family.unconfirmed)
    said = (
        f"{count} of {_scored(tallies)} runs were measured against a reference that nobody confirmed"
        if count
        else "Every reference in use was confirmed"
    )
    return dg.AssetCheckResult(
        asset_key=scores,
        check_name=ALL_CONFIRMED,
        passed=not count,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{said}, in {in_words(tallies)}.",
        metadata={
            "partitions": in_words(tallies),
            "runs": count,
            **({"references": dg.MetadataValue.json(dict(names.most_common(_NAMED)))} if names else {}),
        },
    )


def _scored(tallies: Mapping[str, WindowTally]) -> int:
    return sum(tally.scored for tally in tallies.values())


def _listed(name: str, entries: list[str]) -> dict[str, Any]:
    return {name: dg.MetadataValue.json(entries)} if entries else {}
