"""Judging the scores in a database: what `stepacc gate` and the asset check of a source both do."""

from dataclasses import replace

import sqlalchemy as sa

from stepacc_core.comparison.baselines import Baseline
from stepacc_core.comparison.choosing import Chosen, Wanted, choose
from stepacc_core.comparison.gate import Criteria, Decision, Evidence, decide
from stepacc_core.comparison.observations import Selection
from stepacc_core.errors import ConfigError
from stepacc_core.metrics import Manifest, registered_metrics
from stepacc_dagster.storage.baselines import load_baseline, stored_baseline
from stepacc_dagster.storage.paired import forbidden_steps, groups, newest_windows, observations, without_row


def find_selection(conn: sa.Connection, wanted: Wanted, newest: int | None = None) -> Chosen:
    """Return the one selection that is asked for; an empty one where there is nothing.

    A metric that emits a family is asked for by its own name too: its headline stands for it.

    Args:
        conn: where from.
        wanted: what is asked for.
        newest: only the newest windows, so many, that have anything in them, instead of all.

    Raises:
        ConfigError: there are several metrics, versions or configs.
    """
    if newest is not None:
        found = newest_windows(conn, wanted.source, newest)
        if found is not None:
            wanted = replace(wanted, first=found[0], last=found[1])
    return choose(as_stored(wanted), groups(conn, wanted))


def as_stored(wanted: Wanted) -> Wanted:
    """Return what is wanted by the name that its rows have: the headline in the place of the family's name."""
    manifest = _manifest(wanted.metric or "")
    if manifest is not None and manifest.headline and wanted.metric == manifest.name:
        return replace(wanted, metric=manifest.headline)
    return wanted


def installed_versions(row: str | None) -> tuple[str | None, tuple[str, ...]]:
    """Return the metric that writes rows of a name, and its versions; None and nothing where none is known."""
    found = [known.manifest for known in registered_metrics() if row in (known.manifest.name, *known.manifest.family)]
    return (found[0].name, tuple(each.version for each in found)) if found else (None, ())


def judge(conn: sa.Connection, selection: Selection, criteria: Criteria, baseline: str | None = None) -> Decision:
    """Judge the current scores of a selection.

    Args:
        conn: where from.
        selection: which scores.
        criteria: what is asked of them.
        baseline: name of the baseline they are compared with, where the criteria ask for it.

    Raises:
        ConfigError: lower scores of the metric are better, for which no criterion is made.
        UnknownIdError: there is no such baseline.
    """
    _refuse_lower_is_better(selection.metric)
    kept: Baseline | None = None
    if baseline is not None:
        kept = load_baseline(conn, stored_baseline(conn, selection.source, baseline))
    manifest = _manifest(selection.metric)
    headline = replace(selection, metric=(manifest and manifest.headline) or selection.metric)
    search = forbidden_steps(conn, headline) if criteria.no_forbidden else None
    evidence = Evidence(selection, observations(conn, selection), without_row(conn, selection), search)
    return decide(criteria, evidence, kept)


def _manifest(metric: str) -> Manifest | None:
    """Return the manifest of the metric, or of the family that has a member, of that name; None where none is known."""
    for known in registered_metrics():
        if metric == known.manifest.name or metric in known.manifest.family:
            return known.manifest
    return None


def _refuse_lower_is_better(metric: str) -> None:
    manifest = _manifest(metric)
    if manifest is not None and manifest.direction == "lower_is_better":
        msg = f"Lower scores of `{metric}` are better, and a gate asks for high ones; gate another metric."
        raise ConfigError(msg, "metric")
