"""Which windows are out of date, told from what each was last worked on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stepacc_dagster.storage.work import content_as_read

_BETWEEN = " | "
"""Stands between the tokens of several metrics."""

_STATES = f"""
    SELECT w.window_key, w.change, w.ingested_change, own.content, s.content AS scored_content, w.traces, w.ingested_at,
           w.requested, w.requests, w.request_again_at,
           w.ingested_change <> w.change OR w.reader_version IS DISTINCT FROM :reader_version AS ingest_due,
           w.problem AS ingest_problem,
           w.ingested_at IS NOT NULL
               AND (s.window_key IS NULL OR s.content <> own.content OR s.rules IS DISTINCT FROM :rules
                    OR coalesce(s.due_at <= now(), false)) AS score_due,
           s.window_key IS NULL AND EXISTS (
               SELECT 1 FROM stepacc.window_scores other
               WHERE other.source = w.source AND other.window_key = w.window_key AND other.metric = m.metric
                 AND other.scored_at IS NOT NULL AND other.content = own.content
                 AND NOT coalesce(other.due_at <= now(), false)
           ) AS other_version,
           s.due_at, s.unsettled, s.scored, s.failed, s.not_applicable, s.skipped, s.problem AS score_problem,
           concat_ws('/', w.change, :reader_version, own.content, m.metric_version, m.config_hash, :rules,
                     CASE WHEN s.due_at <= now() THEN CAST(s.due_at AS text) END) AS token,
           now() AS now, m.metric, m.place
    FROM stepacc.windows w
    CROSS JOIN unnest(
        CAST(:metrics AS text[]), CAST(:metric_versions AS text[]), CAST(:config_hashes AS text[]),
        CAST(:annotation_keys AS text[])
    ) WITH ORDINALITY m (metric, metric_version, config_hash, annotation_key, place)
    CROSS JOIN LATERAL (SELECT {content_as_read("w", "m.annotation_key")} AS content) own
    LEFT JOIN stepacc.window_scores s ON s.source = w.source AND s.window_key = w.window_key AND s.metric = m.metric
        AND s.metric_version = m.metric_version AND s.config_hash = m.config_hash
    WHERE w.source = :source AND w.window_key BETWEEN :first AND :last AND length(w.window_key) = length(:first)
"""  # noqa: S608 (a part of this package)
_ALL = sa.text(f"{_STATES} ORDER BY w.window_key")


def _wait(requests: str) -> str:
    """Return the SQL of how long to wait for a run before another may be asked for; longer with each that was lost."""
    return f"least(interval '15 minutes' * (1 << least({requests} - 1, 5)), interval '6 hours')"


# A moment that lies farther off than anybody waits was written before the server's clock went back.
_DUE = sa.text(f"""
    WITH state AS (
        SELECT *, ingest_due OR (score_due AND (:rescore OR NOT other_version)) AS is_due FROM ({_STATES}) every
        WHERE NOT EXISTS (
            SELECT 1 FROM unnest(CAST(:busy_from AS text[]), CAST(:busy_to AS text[])) busy (first, last)
            WHERE window_key BETWEEN busy.first AND busy.last
        )
    ),
    due AS (
        SELECT window_key, bool_or(ingest_due) AS ingest_due,
               array_agg(metric ORDER BY place) FILTER (WHERE is_due) AS metrics,
               string_agg(token, '{_BETWEEN}' ORDER BY place) AS token, requested, requests, request_again_at, now
        FROM state GROUP BY window_key, requested, requests, request_again_at, now HAVING bool_or(is_due)
    )
    SELECT window_key, ingest_due, metrics, token, requested, requests, now FROM due
    WHERE NOT coalesce(
        requested = token AND request_again_at > now AND request_again_at <= now + {_wait("requests")}, false
    )
    ORDER BY window_key DESC LIMIT :limit
""")  # noqa: S608 (parts of this module)
_INGESTED = sa.text("SELECT window_key FROM stepacc.windows WHERE source = :source AND ingested_at IS NOT NULL")
_REQUESTED = sa.text(f"""
    UPDATE stepacc.windows present SET requested = asked.token, requests = asked.attempt,
        request_again_at = now() + {_wait("asked.attempt")}
    FROM unnest(CAST(:keys AS text[]), CAST(:tokens AS text[]), CAST(:attempts AS int[])) asked (key, token, attempt)
    WHERE present.source = :source AND present.window_key = asked.key
""")  # noqa: S608 (a part of this module)


_SHARED = ("source", "reader_version", "rules", "first", "last")
_OF_METRIC = {
    "metric": "metrics",
    "metric_version": "metric_versions",
    "config_hash": "config_hashes",
    "annotation_key": "annotation_keys",
}
"""The fields that differ from metric to metric, and the lists of them that the queries take."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What windows are looked at, from `first` to `last`, and what each should have been worked on with.

    `annotation_key` is that of the annotations which the metric reads.
    """

    source: str
    reader_version: str
    metric: str
    metric_version: str
    config_hash: str
    annotation_key: str
    rules: str
    first: str
    last: str


@dataclass(frozen=True, slots=True)
class WindowState:
    """Where a window stands with one metric.

    Attributes:
        window_key: the window.
        change: number of its last change in the store.
        ingested_change: the change up to which it was ingested.
        content: number of its last change here, annotations that the metric reads included.
        scored_content: the content it was last scored on; None: never.
        traces: traces in it; None before the first ingest.
        ingested_at: when it was last ingested; None: never.
        requested: what the last run asked for was to bring up to date.
        requests: runs asked for to do just that.
        request_again_at: when the next may be asked for.
        ingest_due: whether it has to be ingested.
        ingest_problem: why the last ingest failed.
        score_due: whether it has to be scored as it stands.
        other_version: whether other versions or configs of the metric have scored it as it stands, and this one never.
        due_at: when a trace that was unsettled settles.
        unsettled: occurrences that were unsettled when it was scored; with `scored`, `failed`, `not_applicable` and
            `skipped` all it had. None where it never was scored by this version and config.
        scored: see `unsettled`.
        failed: see `unsettled`.
        not_applicable: see `unsettled`.
        skipped: see `unsettled`.
        score_problem: why the last scoring failed.
        token: what it would be brought up to date with now; a run asked for is lost, and may be asked for again, only
            while this stays the same.
        now: the database's clock.
    """

    window_key: str
    change: int
    ingested_change: int
    content: int
    scored_content: int | None
    traces: int | None
    ingested_at: datetime | None
    requested: str | None
    requests: int | None
    request_again_at: datetime | None
    ingest_due: bool
    ingest_problem: str | None
    score_due: bool
    other_version: bool
    due_at: datetime | None
    unsettled: int | None
    scored: int | None
    failed: int | None
    not_applicable: int | None
    skipped: int | None
    score_problem: str | None
    token: str
    now: datetime

    @property
    def is_due(self) -> bool:
        """Whether anything has to be done."""
        return self.ingest_due or self.score_due

    @property
    def problem(self) -> str | None:
        """Why the last attempt to ingest or to score it failed; None where neither did."""
        return self.ingest_problem or self.score_problem

    @property
    def asked(self) -> bool:
        """Whether the last run asked for was to bring it up to date as it stands now."""
        return self.requested is not None and self.token in self.requested.split(_BETWEEN)


@dataclass(frozen=True, slots=True)
class DueWindow:
    """A window that is out of date.

    Attributes:
        window_key: the window.
        ingest_due: whether it has to be ingested.
        metrics: the metrics it has to be scored by, in the order in which they were given; all, where it is ingested.
        token: what it would be brought up to date with now; a run asked for is lost, and may be asked for again, only
            while this stays the same.
        requested: what the last run asked for was to bring up to date.
        requests: runs asked for to do just that.
        now: the database's clock.
    """

    window_key: str
    ingest_due: bool
    metrics: tuple[str, ...]
    token: str
    requested: str | None
    requests: int | None
    now: datetime


def window_states(conn: sa.Connection, wanted: Wanted) -> list[WindowState]:
    """Return where each window stands, in order of their keys.

    Windows that never had anything in them are not among them.
    """
    rows = conn.execute(_ALL, _names([wanted])).mappings()
    return [WindowState(**{name: row[name] for name in WindowState.__slots__}) for row in rows]


def due_windows(
    conn: sa.Connection, wanted: Sequence[Wanted], *, rescore: bool, busy: Sequence[tuple[str, str]], limit: int
) -> list[DueWindow]:
    """Return windows that are out of date, newest first, and that no run was asked for lately to bring up to date.

    Args:
        conn: the database.
        wanted: what they should have been worked on with, metric by metric; all else is the same in each.
        rescore: whether windows that only other versions or configs of a metric have scored are among them.
        busy: first and last window of stretches that are left alone.
        limit: how many at most.
    """
    stretches = {"busy_from": [first for first, _ in busy], "busy_to": [last for _, last in busy]}
    names = _names(wanted) | stretches | {"rescore": rescore, "limit": limit}
    rows = conn.execute(_DUE, names).mappings()
    return [DueWindow(**{**row, "metrics": tuple(row["metrics"])}) for row in rows]


def ingested_windows(conn: sa.Connection, source: str) -> set[str]:
    """Return the keys of the windows that were ever ingested, empty ones too."""
    return set(conn.scalars(_INGESTED, {"source": source}))


def note_requested(conn: sa.Connection, source: str, asked: Iterable[Mapping[str, Any]]) -> None:
    """Note that runs were asked for: `key` of the window, `token` of what is to be done, `attempt` to do just that."""
    rows = list(asked)
    columns = {f"{name}s": [row[name] for row in rows] for name in ("key", "token", "attempt")}
    conn.execute(_REQUESTED, {"source": source, **columns})


def _names(wanted: Sequence[Wanted]) -> dict[str, Any]:
    shared = {name: getattr(wanted[0], name) for name in _SHARED}
    return shared | {each: [getattr(one, name) for one in wanted] for name, each in _OF_METRIC.items()}
