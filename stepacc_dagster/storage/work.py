"""What each window was last worked on: written with the work itself, in its transaction.

A number is read before the work begins, and written when it is done: whatever changed in between leaves the window out
of date, so that it is worked on once more rather than missed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa

from stepacc_dagster.storage.settling import Unsettled


def content_as_read(window: str, key: str) -> str:
    """Return the SQL of the number of a window's content, with that of the annotations of a key.

    Neither ever falls, so the sum is another whenever one of them is.

    Args:
        window: the row of `windows`, as the query calls it.
        key: the annotation key, as the query calls it.
    """
    return f"""{window}.content + coalesce((
        SELECT said.content FROM stepacc.window_annotations said
        WHERE said.source = {window}.source AND said.window_key = {window}.window_key AND said.key = {key}
    ), 0)"""  # noqa: S608 (names of the callers)


_CHANGE = sa.text("SELECT change FROM stepacc.windows WHERE source = :source AND window_key = :window")
_CONTENT = sa.text(f"""
    SELECT {content_as_read("w", ":annotation_key")} FROM stepacc.windows w
    WHERE source = :source AND window_key = :window
""")  # noqa: S608 (a part of this module)
_NOTED = sa.text("""
    INSERT INTO stepacc.windows AS present (source, window_key, change)
    SELECT :source, key, 1 FROM unnest(CAST(:windows AS text[])) key ORDER BY key
    ON CONFLICT (source, window_key) DO UPDATE SET change = present.change + 1
""")
_INGESTED = sa.text("""
    INSERT INTO stepacc.windows AS present (source, window_key, content)
    SELECT :source, key, 1 FROM unnest(CAST(:changed AS text[])) key
    UNION SELECT :source, :window, 0 WHERE NOT :window = ANY(CAST(:changed AS text[]))
    ORDER BY 2
    ON CONFLICT (source, window_key) DO UPDATE SET content = present.content + excluded.content
""")
_INGESTED_ITSELF = sa.text("""
    WITH before AS (SELECT ingested_at FROM stepacc.windows WHERE source = :source AND window_key = :window)
    UPDATE stepacc.windows SET ingested_change = :change, reader_version = :reader_version, traces = :traces,
        ingested_at = now(), problem = NULL, final = false
    WHERE source = :source AND window_key = :window
    RETURNING (SELECT before.ingested_at IS NULL FROM before)
""")
_INGEST_FAILED = sa.text("""
    INSERT INTO stepacc.windows AS present (source, window_key, change, problem, final)
    VALUES (:source, :window, :change, :problem, :final)
    ON CONFLICT (source, window_key) DO UPDATE SET problem = excluded.problem, final = excluded.final,
        ingested_change = CASE WHEN :final THEN :change ELSE present.ingested_change END,
        reader_version = CASE WHEN :final THEN CAST(:reader_version AS text) ELSE present.reader_version END
""")
_COUNTS = ("scored", "failed", "not_applicable", "skipped", "unsettled")
_SCORED = sa.text(f"""
    INSERT INTO stepacc.window_scores (source, window_key, metric, metric_version, config_hash, content, rules, due_at,
        {", ".join(_COUNTS)}, dagster_run_id, scored_at)
    VALUES (:source, :window, :metric, :metric_version, :config_hash, :content, :rules, :due_at,
        {", ".join(f":{name}" for name in _COUNTS)}, :run_id, now())
    ON CONFLICT (source, window_key, metric, metric_version, config_hash) DO UPDATE SET content = excluded.content,
        rules = excluded.rules, due_at = excluded.due_at, {", ".join(f"{name} = excluded.{name}" for name in _COUNTS)},
        dagster_run_id = excluded.dagster_run_id, scored_at = now(), problem = NULL, final = false
""")  # noqa: S608 (names of this module)
_SCORING_FAILED = sa.text("""
    INSERT INTO stepacc.window_scores AS present
        (source, window_key, metric, metric_version, config_hash, content, rules, dagster_run_id, problem, final)
    VALUES (:source, :window, :metric, :metric_version, :config_hash, CASE WHEN :final THEN :content ELSE -1 END,
        :rules, :run_id, :problem, :final)
    ON CONFLICT (source, window_key, metric, metric_version, config_hash) DO UPDATE SET
        content = CASE WHEN :final THEN :content ELSE present.content END,
        rules = CASE WHEN :final THEN :rules ELSE present.rules END,
        due_at = CASE WHEN :final AND present.due_at <= now() THEN NULL ELSE present.due_at END,
        dagster_run_id = excluded.dagster_run_id,
        problem = excluded.problem, final = excluded.final
""")


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Under what a window is scored: source and key; metric, version and config hash; the source's rules; the run."""

    source: str
    window: str
    metric: str
    metric_version: str
    config_hash: str
    rules: str
    run_id: str | None


@dataclass(frozen=True, slots=True)
class ScoredCounts:
    """What became of the occurrences of a window."""

    scored: int
    failed: int
    not_applicable: int
    skipped: int


def change_of(conn: sa.Connection, source: str, window: str) -> int:
    """Return the number of the last change of a window's traces that was noticed in the store; 0 for none."""
    return conn.scalar(_CHANGE, {"source": source, "window": window}) or 0


def content_of(conn: sa.Connection, source: str, window: str, annotation_key: str) -> int:
    """Return the number of the last change of a window's traces, sessions or annotations of a key; 0 for none."""
    return conn.scalar(_CONTENT, {"source": source, "window": window, "annotation_key": annotation_key}) or 0


def note_changes(conn: sa.Connection, source: str, windows: Iterable[str]) -> None:
    """Note that traces of these windows changed in their store."""
    conn.execute(_NOTED, {"source": source, "windows": sorted(set(windows))})


def note_ingested(  # noqa: PLR0913 (what an ingest amounts to)
    conn: sa.Connection,
    source: str,
    window: str,
    *,
    change: int,
    reader_version: str,
    traces: int,
    changed: Iterable[str],
) -> bool:
    """Note that a window was ingested, and return whether it never was before.

    Args:
        conn: in the transaction of the ingest.
        source: the source.
        window: the window's key.
        change: `change_of` the window before its store was read.
        reader_version: code version of the reading.
        traces: traces the window has now.
        changed: windows whose content is another now, this one or others.
    """
    names = {"source": source, "window": window}
    conn.execute(_INGESTED, {**names, "changed": sorted(set(changed))})
    own = {**names, "change": change, "reader_version": reader_version, "traces": traces}
    return bool(conn.execute(_INGESTED_ITSELF, own).scalar_one())


def note_ingest_failed(  # noqa: PLR0913 (as above)
    conn: sa.Connection, source: str, window: str, *, change: int, reader_version: str, problem: str, final: bool
) -> None:
    """Note why a window could not be ingested; `final` when trying the same again would fail the same way."""
    names = {"source": source, "window": window, "change": change, "reader_version": reader_version}
    conn.execute(_INGEST_FAILED, {**names, "problem": problem, "final": final})


def note_scored(
    conn: sa.Connection, evaluated: Evaluated, content: int, counts: ScoredCounts, unsettled: Unsettled
) -> None:
    """Note that a window was scored as of `content`, in the transaction that writes the scores."""
    values = _names(evaluated) | {name: getattr(counts, name) for name in counts.__slots__}
    conn.execute(_SCORED, values | {"content": content, "unsettled": unsettled.occurrences, "due_at": unsettled.due_at})


def note_scoring_failed(conn: sa.Connection, evaluated: Evaluated, content: int, problem: str, *, final: bool) -> None:
    """Note why a window could not be scored; `final` when trying the same again would fail the same way."""
    conn.execute(_SCORING_FAILED, _names(evaluated) | {"content": content, "problem": problem, "final": final})


def _names(evaluated: Evaluated) -> dict[str, object]:
    return {name: getattr(evaluated, name) for name in evaluated.__slots__}
