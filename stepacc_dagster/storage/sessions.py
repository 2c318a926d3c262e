"""Sessions: derived from the traces that name them."""

import sqlalchemy as sa

from stepacc_dagster.storage.locks import lock

_HOMES = sa.text("""
    SELECT DISTINCT window_key FROM stepacc.sessions JOIN touched_sessions USING (session_id) WHERE source = :source
""")
_REFRESH = sa.text("""
    WITH member AS (
        SELECT traces.* FROM touched_sessions JOIN stepacc.traces USING (session_id) WHERE source = :source
    ),
    first AS (
        SELECT DISTINCT ON (session_id) session_id, task_id, window_key, trace_id, start_time_unix_nano
        FROM member ORDER BY session_id, start_time_unix_nano NULLS LAST, trace_id
    ),
    whole AS (SELECT session_id, max(end_time_unix_nano) AS latest, count(*) AS traces FROM member GROUP BY session_id)
    INSERT INTO stepacc.sessions
        (source, session_id, task_id, window_key, first_trace_id, start_time_unix_nano, end_time_unix_nano, trace_count)
    SELECT :source, session_id, task_id, window_key, trace_id, start_time_unix_nano, latest, traces
    FROM first JOIN whole USING (session_id) ORDER BY session_id
    ON CONFLICT (source, session_id) DO UPDATE SET
        task_id = excluded.task_id, window_key = excluded.window_key, first_trace_id = excluded.first_trace_id,
        start_time_unix_nano = excluded.start_time_unix_nano, end_time_unix_nano = excluded.end_time_unix_nano,
        trace_count = excluded.trace_count, changed_at = now()
""")
_REMOVE = sa.text("""
    DELETE FROM stepacc.sessions session USING touched_sessions touched
    WHERE session.source = :source AND session.session_id = touched.session_id AND NOT EXISTS (
        SELECT 1 FROM stepacc.traces WHERE traces.source = :source AND traces.session_id = touched.session_id
    )
""")
_HOMES_OF_RANGE = sa.text("""
    SELECT DISTINCT session.window_key FROM stepacc.traces trace
    JOIN stepacc.sessions session ON session.source = :source AND session.session_id = trace.session_id
    WHERE trace.source = :source AND trace.window_key BETWEEN :first AND :last
""")


def session_homes(conn: sa.Connection, source: str, *, first: str, last: str) -> set[str]:
    """Return the home windows of the sessions that have a trace in a window from `first` to `last`, both included."""
    return set(conn.scalars(_HOMES_OF_RANGE, {"source": source, "first": first, "last": last}))


def refresh_sessions(conn: sa.Connection, source: str) -> set[str]:
    """Derive the sessions listed in the temporary table `touched_sessions` anew; one without traces goes.

    One writer per source at a time: a session spans windows, and two that work on two of them must each see what the
    other wrote. It comes last in a transaction, so nobody waits long.

    Returns:
        The home windows of these sessions, those before and those after.
    """
    names = {"source": source}
    lock(conn, "sessions", source)
    conn.execute(sa.text("ANALYZE touched_sessions"))
    homes = set(conn.scalars(_HOMES, names))
    conn.execute(_REFRESH, names)
    conn.execute(_REMOVE, names)
    return homes | set(conn.scalars(_HOMES, names))
