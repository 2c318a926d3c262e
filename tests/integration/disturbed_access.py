"""What the tests of disturbances share: data, the rows of a run without any, and what must hold afterwards."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
import sqlalchemy as sa

from stepacc_core.model import RawSpan
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.local.evaluation import LocalEvaluation
from stepacc_dagster.partitions import partitions_of
from stepacc_dagster.sensors import wanted_of
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.due import window_states
from stepacc_dagster.storage.raw_spans import land_spans
from tests.integration.evaluation_access import Workshop
from tests.integration.evaluation_samples import MONDAY, TUESDAY, WEDNESDAY, agent_trace, chain_trace

WEEK = (MONDAY, TUESDAY, WEDNESDAY)
TYPES = {"trace": "fail", "session": "skip"}
"""What the sources of these tests score, and what becomes of it where nobody annotated it."""

Rows = Mapping[str, Sequence[Any]]
"""Rows of each table, as JSON values in a fixed order; each has the column `source`."""

# Everything but what differs from run to run by nature: ids, times, runs, and numbers of changes.
_ROWS = {
    "scores": """
        SELECT to_jsonb(s) - '{id,annotation_id,dagster_run_id,evaluated_at,confirmed_at,retired_at}'::text[]
            || jsonb_build_object('retired', s.retired_at IS NOT NULL, 'annotation', a.target_id || '/' || a.revision,
                                  'metadata', m.metadata #- '{annotation,id}',
                                  'is_current', EXISTS (SELECT 1 FROM stepacc.current_scores c WHERE c.id = s.id))
        FROM stepacc.scores s LEFT JOIN stepacc.annotations a ON a.id = s.annotation_id
        LEFT JOIN stepacc.score_metadata m ON m.score_id = s.id
    """,
    "current_scores": """
        SELECT to_jsonb(s) - '{id,annotation_id,dagster_run_id,evaluated_at,confirmed_at}'::text[]
        FROM stepacc.current_scores s
    """,
    "traces": "SELECT to_jsonb(t) - '{first_ingested_at,changed_at}'::text[] FROM stepacc.traces t",
    "spans": "SELECT to_jsonb(s) FROM stepacc.spans s",
    "sessions": "SELECT to_jsonb(s) - 'changed_at' FROM stepacc.sessions s",
    "window_scores": """
        SELECT to_jsonb(w) - '{content,dagster_run_id,scored_at}'::text[] FROM stepacc.window_scores w
    """,
}


def spans_of(source: str) -> list[RawSpan]:
    """Return the spans of three days: right and wrong steps, sessions of one window and of two, and odd traces."""
    found = chain_trace(f"{source} chain", TUESDAY)
    for place, key in enumerate(WEEK):
        found += agent_trace(f"{source} {key} good", key, "search", "answer", task="refund")
        found += agent_trace(f"{source} {key} bad", key, "answer", "search", "fetch", hour=10, task="refund")
        found += agent_trace(f"{source} {key} own", key, "fetch", hour=11, task="refund")
        found += agent_trace(f"{source} {key} talk", key, "search", hour=12, session=f"{source} talk {place // 2}")
        found += agent_trace(f"{source} {key} nobody", key, "search", hour=13)
    return found


def annotations_of(source: str) -> list[AnnotationEntry]:
    """Return what is expected of them; of the traces that end in `nobody` nothing."""
    return [
        AnnotationEntry(source, "task", "refund", ["search", "answer"], "trace"),
        AnnotationEntry(source, "trace", f"{source} {TUESDAY} own", [["search", "fetch"]], "trace"),
        *(
            AnnotationEntry(source, "session", f"{source} talk {place}", ["search", "search"], "session")
            for place in range(2)
        ),
    ]


def furnish(engine: sa.Engine, *sources: str) -> None:
    """Land the spans and write the annotations of sources."""
    with engine.begin() as connection:
        for source in sources:
            land_spans(connection, source, spans_of(source))
            add_annotations(connection, annotations_of(source))


def rows(engine: sa.Engine) -> Rows:
    """Return what the tables hold, without what differs from run to run."""
    with engine.connect() as connection:
        return {
            table: list(connection.scalars(sa.text(f"SELECT x FROM ({query}) each (x) ORDER BY x::text")))  # noqa: S608
            for table, query in _ROWS.items()
        }


def of_source(found: Rows, source: str) -> Rows:
    """Return the rows of one source."""
    return {table: [row for row in given if row["source"] == source] for table, given in found.items()}


def undisturbed(workshop: Workshop, sources: Sequence[Source]) -> Rows:
    """Return the rows that a run without any disturbance leaves, with no process but this one."""
    furnish(workshop.engine, *(source.name for source in sources))
    for source in sources:
        [run] = LocalEvaluation(source, workshop.instance, workshop.engine).materialize(WEEK)
        assert run.success, run.error
    return rows(workshop.engine)


def assert_undisturbed(engine: sa.Engine, expected: Rows, source: str, *, history: bool = True) -> None:
    """See that each row of a source is there just as after an undisturbed run, each once, and no other.

    Args:
        engine: the database.
        expected: what an undisturbed run leaves.
        source: the source.
        history: False where a session was scored before all its windows could be ingested, and so once more than it
            would have been: then only evaluations that are current are looked at.
    """
    found = dict(of_source(rows(engine), source))
    if not history:
        found["scores"] = [row for row in found["scores"] if row["is_current"]]
    for table, wanted in of_source(expected, source).items():
        assert wanted
        assert len(found[table]) == len(wanted), table
        for row, want in zip(found[table], wanted, strict=True):
            assert row == want, table
    with engine.connect() as connection:
        [(scores, explained)] = connection.execute(
            sa.text("SELECT (SELECT count(*) FROM stepacc.scores), (SELECT count(*) FROM stepacc.score_metadata)")
        )
    assert scores == explained > 0


def due(engine: sa.Engine, sources: Sequence[Source]) -> dict[tuple[str, str], str]:
    """Return the windows that are out of date or whose last attempt failed, with what is to be done or the reason."""
    found = {}
    with engine.connect() as connection:
        for source in sources:
            wanted = wanted_of(source, evaluator_of(source), partitions_of(source).get_partition_keys())
            for state in window_states(connection, wanted):
                if state.is_due or state.problem:
                    found[source.name, state.window_key] = state.problem or ("ingest" if state.ingest_due else "score")
    return found


def unfinished(instance: dg.DagsterInstance) -> list[str]:
    """Return the runs that have not ended, and their status."""
    return [f"{run.run_id} {run.status.value}" for run in instance.get_runs() if not run.is_finished]


def held_slots(instance: dg.DagsterInstance) -> list[str]:
    """Return the runs that hold a slot of a pool, or wait for one."""
    storage = instance.event_log_storage
    pools = [storage.get_concurrency_info(key) for key in storage.get_concurrency_keys()]
    assert pools
    claimed = [slot.run_id for pool in pools for slot in pool.claimed_slots]
    return claimed + [step.run_id for pool in pools for step in pool.pending_steps]
