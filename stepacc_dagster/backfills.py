"""What a backfill would do: which windows, what to each, and why. Pure: the database is read before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from stepacc_dagster.storage.due import WindowState

Only = Literal["stale", "failed", "all"]

NEVER_INGESTED = "never ingested"
CHANGED_IN_STORE = "spans are new or changed"
READ_OTHERWISE = "read by other settings or an older reading"
OTHER_VERSION = "scored by another version or config only"
NEVER_SCORED = "never scored"
CHANGED_HERE = "annotations, sessions or traces changed"
SETTLED = "traces have settled"
ASKED = "asked for"


@dataclass(frozen=True, slots=True)
class Planned:
    """A window of a backfill.

    Attributes:
        key: the window.
        ingest: whether it is ingested before it is scored.
        why: the reason, one of the constants of this module; several metrics may have several.
        problem: why the last attempt failed; None where it did not.
        metrics: the metrics it is scored by.
    """

    key: str
    ingest: bool
    why: str
    problem: str | None = None
    metrics: tuple[str, ...] = ()


def plan(states: Mapping[str, Sequence[WindowState]], keys: Sequence[str], only: Only) -> list[Planned]:
    """Choose the windows of a backfill.

    Args:
        states: by metric, where the windows stand that ever had anything in them.
        keys: the partitions of the range, oldest first.
        only: `stale` takes what is out of date, `failed` what failed at the last attempt, `all` every partition.

    Returns:
        The windows, oldest first.
    """
    known = {metric: {state.window_key: state for state in found} for metric, found in states.items()}
    planned: list[Planned] = []
    for key in keys:
        found = [_planned(metric, key, of_metric.get(key), only) for metric, of_metric in known.items()]
        if chosen := [each for each in found if each]:
            planned.append(_together(chosen, list(known)))
    return planned


def _planned(metric: str, key: str, state: WindowState | None, only: Only) -> Planned | None:
    if only == "all":
        due = state is not None and state.is_due
        return Planned(key, ingest=True, why=_why(state) if state and due else ASKED, metrics=(metric,))
    if state is None or not (state.problem if only == "failed" else state.is_due or state.problem):
        return None
    ingest = state.ingest_due or state.ingest_problem is not None
    return Planned(key, ingest, _why(state), state.problem, (metric,))


def _together(planned: Sequence[Planned], metrics: Sequence[str]) -> Planned:
    """Put what is planned of one window for several metrics into one; what is ingested is scored by all."""
    ingest = any(each.ingest for each in planned)
    return Planned(
        planned[0].key,
        ingest,
        "; ".join(dict.fromkeys(each.why for each in planned)),
        next((each.problem for each in planned if each.problem), None),
        tuple(metrics) if ingest else tuple(metric for each in planned for metric in each.metrics),
    )


def _why(state: WindowState) -> str:
    if state.ingest_due and state.ingested_at is None:
        return NEVER_INGESTED
    if state.ingest_due:
        return CHANGED_IN_STORE if state.change > state.ingested_change else READ_OTHERWISE
    if state.other_version:
        return OTHER_VERSION
    if state.scored is None:
        return NEVER_SCORED
    if state.due_at is not None and state.due_at <= state.now and state.content == state.scored_content:
        return SETTLED
    return CHANGED_HERE if state.score_due else ASKED
