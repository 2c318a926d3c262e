"""Why two evaluations of one occurrence differ, as far as their hashes tell."""

from typing import Literal

from stepacc_core.comparison.observations import Observation, Selection

Cause = Literal["reference", "steps", "version", "config", "unknown"]

CAUSES: dict[Cause, str] = {
    "reference": "measured against another expectation",
    "steps": "other steps were observed",
    "version": "the versions of the metric count the same steps differently",
    "config": "the configs count the same steps differently",
    "unknown": "neither steps, expectation, version nor config differ: the metric gives other scores for the same",
}
"""What a cause is in words."""


def causes(before: Observation, after: Observation, first: Selection, second: Selection) -> tuple[Cause, ...]:
    """Return what differs between two evaluations, from which their scores differ.

    Version and config are to blame only where steps and expectation are the same, since else nobody can tell; another
    version has another config in any case.
    """
    found: list[Cause] = []
    if before.reference_hash != after.reference_hash:
        found.append("reference")
    if before.steps_hash != after.steps_hash:
        found.append("steps")
    if found:
        return tuple(found)
    if first.metric_version != second.metric_version:
        found.append("version")
    elif first.config_hash != second.config_hash:
        found.append("config")
    return tuple(found) or ("unknown",)
