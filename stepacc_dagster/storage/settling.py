"""When a trace has settled: it has a root, all its spans have ended, and nothing has happened in it for a while.

One that never gets there is closed after a longer while, and taken as it is. Both are told from the newest time in the
trace; where that lies in the future, or there is none, from when its content was last seen to change.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import PartitionType

CLOSED = "closed_unsettled"
"""Kind of the gap of a trace that was closed without having settled."""

CLOSED_DETAIL = "The trace has no root that has ended; it was waited for, then taken as it is."


@dataclass(frozen=True, slots=True)
class Settling:
    """When traces are taken to be over.

    Attributes:
        now: the moment to judge at, with a time zone.
        quiet: how long a whole trace has to be quiet.
        close: how long a trace without a root, or with spans that never ended, is waited for.
    """

    now: datetime
    quiet: timedelta
    close: timedelta

    @property
    def values(self) -> Mapping[str, Any]:
        """The parameters of `settles_at` and `is_open`."""
        return {"now": self.now, "quiet": self.quiet, "close": self.close}


def settles_at(trace: str, *, quiet: str = ":quiet", close: str = ":close") -> str:
    """Return the SQL of the moment at which a row of `traces` settles or is closed."""
    newest = f"to_timestamp(greatest({trace}.end_time_unix_nano, {trace}.start_time_unix_nano) / 1000000000.0)"
    wait = f"CASE WHEN {trace}.settled THEN CAST({quiet} AS interval) ELSE CAST({close} AS interval) END"
    return f"least({newest}, {trace}.changed_at) + {wait}"


def is_open(trace: str, *, now: str = ":now", quiet: str = ":quiet", close: str = ":close") -> str:
    """Return the SQL that is true for a row of `traces` that has not settled yet.

    One without any times has settled, since nothing tells when it would, and one gone from its store or erased too.
    """
    return (
        f"({trace}.start_time_unix_nano IS NOT NULL AND {trace}.gone_upstream_at IS NULL AND {trace}.erased_at IS NULL "
        f"AND {settles_at(trace, quiet=quiet, close=close)} > CAST({now} AS timestamptz))"
    )


_OPEN = sa.text(f"""
    SELECT count(DISTINCT occurrence), min(settles) FROM (
        SELECT 'trace/' || trace_id AS occurrence, {settles_at("trace")} AS settles
        FROM stepacc.traces trace
        WHERE :traces AND source = :source AND window_key = :window AND {is_open("trace")}
        UNION ALL
        SELECT 'session/' || session.session_id, {settles_at("trace")}
        FROM stepacc.sessions session
        JOIN stepacc.traces trace ON trace.source = :source AND trace.session_id = session.session_id
        WHERE :sessions AND session.source = :source AND session.window_key = :window AND session.erased_at IS NULL
          AND {is_open("trace")}
    ) open
""")  # noqa: S608 (parts of this module)


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Traces and sessions of a window that are still going on, and when the first of their traces settles."""

    occurrences: int
    due_at: datetime | None


def unsettled(
    conn: sa.Connection, source: str, window_key: str, settling: Settling, kinds: Collection[PartitionType]
) -> Unsettled:
    """Count the occurrences of these kinds that have not settled: traces that start in a window, sessions at home."""
    values = {"source": source, "window": window_key, "traces": "trace" in kinds, "sessions": "session" in kinds}
    return Unsettled(*conn.execute(_OPEN, {**values, **settling.values}).one())
