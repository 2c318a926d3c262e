"""What is left when a soak has settled, and what of it is not as it should be."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from tests.integration.disturbed_access import Rows

_SHOWN = 5
_CONNECTIONS = """
    SELECT coalesce(state, 'unknown') AS state, count(*) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() GROUP BY 1
"""
_FIGURES = {
    "partitions": """
        SELECT count(DISTINCT (asset_key, partition)) FROM dagster.event_logs
        WHERE dagster_event_type = 'ASSET_MATERIALIZATION' AND asset_key LIKE '%_scores"]'
    """,
    "evaluations": """
        SELECT count(*) FROM dagster.event_logs
        WHERE dagster_event_type = 'ASSET_MATERIALIZATION' AND asset_key LIKE '%_scores"]'
    """,
    "events": "SELECT count(*) FROM dagster.event_logs",
    "runs": "SELECT count(*) FROM dagster.runs",
}
_SHARED = ("partition", "evaluation", "run")
_RUNS = """
    SELECT coalesce(t.value, 'nobody') || ' ' || lower(r.status), count(*)
    FROM dagster.runs r LEFT JOIN dagster.run_tags t ON t.run_id = r.run_id AND t.key = 'stepacc/trigger'
    GROUP BY 1 ORDER BY 1
"""


def comparable(found: Rows, version: str) -> Rows:
    """Return of the rows what does not hang on when a window was looked at: what is current by one metric version."""
    scores = [row for row in found["scores"] if row["metric_version"] == version and row["is_current"]]
    current = [row for row in found["current_scores"] if row["metric_version"] == version]
    windows = [row for row in found["window_scores"] if row["metric_version"] == version and _has_content(row)]
    return {**found, "scores": scores, "current_scores": current, "window_scores": windows}


def differences(found: Rows, expected: Rows) -> Iterator[str]:
    """Say which rows there are here and not there, some of each table."""
    for table, wanted in expected.items():
        if not wanted:
            yield f"{table}: nothing was expected, so nothing was compared"
        for word, rows in (("too many", _without(found[table], wanted)), ("missing", _without(wanted, found[table]))):
            if rows:
                yield f"{table}: {len(rows)} rows {word}: " + "; ".join(map(str, rows[:_SHOWN]))


def connections(engine: sa.Engine) -> Mapping[str, int]:
    """Return how many connections to the server there are beside the one that asks, by their state."""
    return dict(_rows(engine, _CONNECTIONS))


def figures(engine: sa.Engine) -> Mapping[str, float]:
    """Return what the event log holds: partitions that were scored, how often in all, runs, and events for each."""
    found: dict[str, float] = {name: _rows(engine, query)[0][0] for name, query in _FIGURES.items()}
    shares = {f"events per {name}": round(found["events"] / max(1, found[f"{name}s"]), 1) for name in _SHARED}
    return found | shares


def runs_by_fate(engine: sa.Engine) -> Mapping[str, int]:
    """Return how many runs there were, by who asked for them and how they ended."""
    return dict(_rows(engine, _RUNS))


def advisory_locks(engine: sa.Engine) -> int:
    """Return how many advisory locks anybody holds or waits for."""
    return int(_rows(engine, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")[0][0])


def _rows(engine: sa.Engine, query: str) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(sa.text(query)))


def _has_content(row: Mapping[str, Any]) -> bool:
    return any(row[name] for name in ("scored", "failed", "not_applicable", "skipped", "unsettled"))


def _without(rows: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return rows that the others do not have, as often as they are more here than there."""
    left = list(others)
    more = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            more.append(row)
    return more
