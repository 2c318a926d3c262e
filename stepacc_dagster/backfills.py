"""What a backfill would do: which windows, what to each, and why. Pure: the database is read before."""

from collections.abc import Iterator, Mapping, Sequence
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
        why: the reason, one of the constants of this module.
        problem: why the last attempt failed; None where it did not.
    """

    key: str
    ingest: bool
    why: str
    problem: str | None = None


def plan(states: Sequence[WindowState], keys: Sequence[str], only: Only) -> list[Planned]:
    """Choose the windows of a backfill.

    Args:
        states: where the windows stand that ever had anything in them.
        keys: the partitions of the range, oldest first.
        only: `stale` takes what is out of date, `failed` what failed at the last attempt, `all` every partition.

    Returns:
        The windows, oldest first.
    """
    known = {state.window_key: state for state in states}
    return list(_planned(known, keys, only))


def _planned(known: Mapping[str, WindowState], keys: Sequence[str], only: Only) -> Iterator[Planned]:
    for key in keys:
        state = known.get(key)
        if only == "all":
            due = state is not None and state.is_due
            yield Planned(key, ingest=True, why=_why(state) if state and due else ASKED)
        elif state is not None and (state.problem if only == "failed" else state.is_due or state.problem):
            ingest = state.ingest_due or state.ingest_problem is not None
            yield Planned(key, ingest, _why(state), state.problem)


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
