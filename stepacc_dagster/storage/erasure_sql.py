"""The statements of an erasure, over the traces that were staged for it.

Temporary tables: `given` (what is to be erased, possibly twice) and `named_sessions`; made from them `erasing`, the
sessions and score rows that hold something of these traces, and the windows they lie in.
"""

import sqlalchemy as sa

from stepacc_dagster.storage.copy import ColumnType

_Columns = tuple[tuple[str, ColumnType], ...]

GIVEN: _Columns = (("source", "text"), ("trace_id", "text"))
NAMED_SESSIONS: _Columns = (("source", "text"), ("session_id", "text"))
PREPARED: dict[str, _Columns] = {
    "erasing": GIVEN,
    "erasing_sessions": (*NAMED_SESSIONS, ("former", "bool")),
    "erasing_scores": (("id", "int8"), ("source", "text"), ("window_key", "text")),
    "erasing_windows": (("source", "text"), ("window_key", "text")),
}
"""The temporary tables that `PREPARE` fills, in this order."""

ADD_TRACES_OF_SESSION = sa.text("""
    INSERT INTO given SELECT source, trace_id FROM stepacc.traces WHERE source = :source AND session_id = :session_id
""")
ADD_ERASED_BEFORE = sa.text("""
    INSERT INTO given SELECT tombstone.source, key FROM stepacc.tombstones tombstone
    JOIN stepacc.erasures erasure ON erasure.id = erasure_id
    WHERE kind = 'trace' AND target_digest = :digest AND tombstone.source = ANY(:sources)
""")

# A session that a trace was in before may have scores with its content; but it is no session of an erased trace.
PREPARE = tuple(
    sa.text(statement)
    for statement in (
        "INSERT INTO erasing SELECT DISTINCT source, trace_id FROM given",
        """
        INSERT INTO erasing_sessions (source, session_id, former)
        SELECT source, session_id, bool_and(former) FROM (
            SELECT source, session_id, false AS former FROM named_sessions
            UNION ALL
            SELECT source, session_id, false FROM erasing JOIN stepacc.traces USING (source, trace_id)
            UNION ALL
            SELECT source, score.session_id, true FROM erasing JOIN stepacc.scores score USING (source)
            WHERE score.partition_type = 'trace' AND score.partition_id = erasing.trace_id
        ) found WHERE session_id IS NOT NULL GROUP BY source, session_id
        """,
        """
        INSERT INTO erasing_scores (id, source, window_key)
        SELECT score.id, source, score.window_key FROM erasing JOIN stepacc.scores score USING (source)
        WHERE score.partition_type = 'trace' AND score.partition_id = erasing.trace_id
        UNION
        SELECT score.id, source, score.window_key FROM erasing_sessions JOIN stepacc.scores score USING (source)
        WHERE score.partition_type = 'session' AND score.partition_id = erasing_sessions.session_id
        """,
        """
        INSERT INTO erasing_windows (source, window_key)
        SELECT source, window_key FROM erasing JOIN stepacc.traces USING (source, trace_id)
        UNION SELECT source, window_key FROM erasing_sessions JOIN stepacc.sessions USING (source, session_id)
        UNION SELECT source, window_key FROM erasing_scores
        """,
    )
)
WINDOWS = sa.text("SELECT source, window_key FROM erasing_windows ORDER BY source, window_key")

_SAID = "said.erased_at IS NULL AND said.source = {staged}.source AND said.target_type = '{kind}' "
_SAID_OF_TRACES = _SAID.format(staged="erasing", kind="trace") + "AND said.target_id = erasing.trace_id"
_SAID_OF_SESSIONS = (
    _SAID.format(staged="erasing_sessions", kind="session")
    + "AND said.target_id = erasing_sessions.session_id AND NOT former"
)

COUNT = sa.text(f"""
    SELECT
        (SELECT count(*) FROM erasing WHERE NOT EXISTS (
            SELECT 1 FROM stepacc.tombstones
            WHERE kind = 'trace' AND key = erasing.trace_id AND tombstones.source = erasing.source
        )) AS traces,
        (SELECT count(*) FROM erasing JOIN stepacc.otel_spans USING (source, trace_id)) AS raw_spans,
        (SELECT count(*) FROM erasing JOIN stepacc.spans USING (source, trace_id)) AS spans,
        (SELECT count(*) FROM erasing_scores JOIN stepacc.score_metadata ON score_id = id) AS score_metadata,
        (SELECT count(*) FROM erasing_scores JOIN stepacc.scores USING (id) WHERE message IS NOT NULL) AS messages,
        (SELECT count(*) FROM erasing JOIN stepacc.annotations said ON {_SAID_OF_TRACES})
        + (SELECT count(*) FROM erasing_sessions JOIN stepacc.annotations said ON {_SAID_OF_SESSIONS}) AS annotations
""")  # noqa: S608 (parts of this module)

_NAME = "^[A-Za-z0-9_.-]{1,80}$"
"""What a code or a reason looks like; anything else may be a sentence, with what was found in it."""

_RAW = """
    DELETE FROM stepacc.otel_spans USING erasing
    WHERE otel_spans.source = erasing.source AND otel_spans.trace_id = erasing.trace_id
"""
_SPANS = """
    DELETE FROM stepacc.spans USING erasing WHERE spans.source = erasing.source AND spans.trace_id = erasing.trace_id
"""
# They tell what the metadata of these scores said, and are made anew with the next ones.
_SUMMARIES = """
    DELETE FROM stepacc.task_summaries summary USING erasing_scores JOIN stepacc.scores score USING (id)
    WHERE summary.source = score.source AND summary.task_id = score.task_id
"""
_METADATA = "DELETE FROM stepacc.score_metadata USING erasing_scores WHERE score_id = erasing_scores.id"
# Start and window stay, since they order the traces of a session.
_TRACES = """
    UPDATE stepacc.traces bare SET end_time_unix_nano = NULL, root_span_id = NULL, status = 'UNSET', settled = true,
        span_count = 0, spans_hash = '', gaps = '[]', changed_at = now(), erased_at = now()
    FROM erasing WHERE bare.source = erasing.source AND bare.trace_id = erasing.trace_id AND bare.erased_at IS NULL
"""
_SESSIONS = """
    UPDATE stepacc.sessions bare SET end_time_unix_nano = NULL, erased_at = now() FROM erasing_sessions
    WHERE bare.source = erasing_sessions.source AND bare.session_id = erasing_sessions.session_id AND NOT former
      AND bare.erased_at IS NULL
"""
_ANNOTATIONS = """
    UPDATE stepacc.annotations said SET value = 'null', value_hash = '', note = '', erased_at = now()
    FROM {staged} WHERE {condition}
"""
# An equal hash elsewhere would tell what the steps were; the id of the row keeps the evaluations apart.
_SCORES = f"""
    UPDATE stepacc.scores bare SET message = NULL, steps_hash = CASE WHEN steps_hash IS NOT NULL THEN mark END,
        reference_hash = CASE WHEN reference_hash IS NOT NULL AND emptied THEN mark ELSE reference_hash END,
        code = CASE WHEN code IS NOT NULL AND code !~ '{_NAME}' THEN 'erased' ELSE code END,
        reason = CASE WHEN reason IS NOT NULL AND reason !~ '{_NAME}' THEN 'erased' ELSE reason END
    FROM (
        SELECT own.id AS own_id, 'erased:' || own.id AS mark, said.erased_at IS NOT NULL AS emptied
        FROM erasing_scores JOIN stepacc.scores own USING (id)
        LEFT JOIN stepacc.annotations said ON said.id = own.annotation_id
    ) found
    WHERE bare.id = own_id AND (message IS NOT NULL OR steps_hash <> mark)
"""  # noqa: S608 (a name of this module)
# A baseline keeps scores, and must tell no more of an expectation than the score itself does now.
_BASELINES = """
    UPDATE stepacc.baseline_scores kept SET reference_hash = own.reference_hash
    FROM erasing_scores JOIN stepacc.scores own USING (id)
    WHERE kept.score_id = own.id AND kept.reference_hash IS DISTINCT FROM own.reference_hash
"""
# Locked in the order of their keys, as by all who write several windows.
_PROBLEMS = """
    WITH concerned AS (
        SELECT source, window_key FROM stepacc.{table}
        WHERE problem IS NOT NULL AND (source, window_key) IN (SELECT source, window_key FROM erasing_windows)
        ORDER BY source, window_key FOR UPDATE
    )
    UPDATE stepacc.{table} bare SET problem = 'What it said was erased with a trace of the window.'
    FROM concerned WHERE bare.source = concerned.source AND bare.window_key = concerned.window_key
      AND bare.problem IS NOT NULL
"""
ERASE = tuple(
    sa.text(statement)
    for statement in (
        _RAW,
        _SPANS,
        _SUMMARIES,
        _METADATA,
        _TRACES,
        _SESSIONS,
        _ANNOTATIONS.format(staged="erasing", condition=_SAID_OF_TRACES),
        _ANNOTATIONS.format(staged="erasing_sessions", condition=_SAID_OF_SESSIONS),
        _SCORES,
        _BASELINES,
        _PROBLEMS.format(table="windows"),
        _PROBLEMS.format(table="window_scores"),
    )
)
BURY = sa.text("""
    INSERT INTO stepacc.tombstones (kind, key, source, erasure_id)
    SELECT 'trace', trace_id, source, :erasure_id FROM erasing ORDER BY source, trace_id ON CONFLICT DO NOTHING
""")
