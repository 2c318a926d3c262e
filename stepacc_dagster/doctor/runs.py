"""Checks of a Dagster instance's pools and of the runs that have not ended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from stepacc_dagster.cli.output import counted
from stepacc_dagster.doctor.findings import Finding
from stepacc_dagster.doctor.wording import lasting, listed

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of stepacc.

    Attributes:
        name: of the pool.
        limit: steps at a time; None where none is set yet.
        declared: what the manifests of its metric say; None where no configured source uses it.
        in_force: whether the instance's storage can hold limits at all.
        held_by_ended: runs that have ended, or are no more, and still hold a place.
        waiting: steps that wait for a place.
    """

    name: str
    limit: int | None
    declared: int | None
    in_force: bool = True
    held_by_ended: tuple[str, ...] = ()
    waiting: int = 0


@dataclass(frozen=True, slots=True)
class UnfinishedRun:
    """A run that has not ended.

    Attributes:
        run_id: of the run.
        status: as Dagster calls it, such as QUEUED or STARTED.
        since: since when it has been in it.
        limit: how long it may be; None: as long as it takes.
        is_dead: whether it is known that its process is gone.
    """

    run_id: str
    status: str
    since: datetime
    limit: timedelta | None
    is_dead: bool = False


def check_pools(pools: Sequence[Pool]) -> Iterator[Finding]:
    """Say which limits hold, and which places are held by nobody."""
    for pool in pools:
        yield from _pool(pool)


def check_runs(runs: Sequence[UnfinishedRun], now: datetime) -> Iterator[Finding]:
    """Say which unfinished runs will not end by themselves."""
    dead = [run for run in runs if run.is_dead]
    late = [run for run in runs if not run.is_dead and run.limit is not None and now - run.since > run.limit]
    if dead:
        yield Finding(
            "warning",
            f"{counted(len(dead), 'unfinished run')} without a living process: {listed([run.run_id for run in dead])}.",
            "The next `stepacc materialize` ends them and frees their places; or end them in the UI.",
        )
    for run in late[:_SHOWN]:
        yield Finding("warning", _late(run, now), _remedy(run))
    if len(late) > _SHOWN:
        yield Finding(
            "warning",
            f"{counted(len(late) - _SHOWN, 'more run')} over the time.",
            "Look at the runs in progress in the UI.",
        )
    if not dead and not late:
        yield Finding(
            "ok", f"{counted(len(runs), 'run')} under way, within their time." if runs else "No run is stuck."
        )


def _pool(pool: Pool) -> Iterator[Finding]:
    if not pool.in_force:
        yield Finding(
            "warning",
            f"The limit of pool {pool.name} is not in force: the instance's storage holds no limits.",
            "Use a storage on disk or in PostgreSQL, and run `dagster instance migrate` if it is an old one.",
        )
    elif pool.limit == 0:
        yield Finding(
            "error",
            f"Pool {pool.name} has the limit 0, so no step of it ever runs.",
            f"Run `dagster instance concurrency set {pool.name} {pool.declared or 1}`, or raise it in the UI.",
        )
    elif pool.limit is None:
        yield Finding("ok", f"Pool {pool.name} has no limit yet; the first run sets the manifest's, {pool.declared}.")
    else:
        whose = "as its metric's manifest says" if pool.limit == pool.declared else "set by somebody, and kept"
        waiting = f"; {pool.waiting} wait" if pool.waiting else ""
        yield Finding("ok", f"Pool {pool.name} lets {counted(pool.limit, 'step')} run at a time, {whose}{waiting}.")
    if pool.held_by_ended:
        yield Finding(
            "error" if pool.limit is not None and len(pool.held_by_ended) >= pool.limit else "warning",
            f"Runs that have ended hold {counted(len(pool.held_by_ended), 'place')} in pool {pool.name}: "
            f"{listed(pool.held_by_ended)}.",
            "Free them in the UI (Deployment, Concurrency), and set free_slots_after_run_end_seconds under "
            "run_monitoring in dagster.yaml, so that the daemon does.",
        )


def _late(run: UnfinishedRun, now: datetime) -> str:
    allowed = lasting(run.limit) if run.limit is not None else ""
    return f"Run {run.run_id} has been {run.status} for {lasting(now - run.since)}; it should be {allowed} at most."


def _remedy(run: UnfinishedRun) -> str:
    if run.status == "QUEUED":
        return "See that the daemon runs and what the queue waits for (Runs, Queued in the UI), or cancel the run."
    return "Terminate it in the UI; with run_monitoring enabled and the daemon running, Dagster does so by itself."
