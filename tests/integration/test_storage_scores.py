"""An evaluation is one row however often it is made, and what was confirmed last is current."""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_core.fingerprint import fingerprint
from stepacc_core.metrics import get_metric
from stepacc_core.metrics.base import build_config, evaluate
from stepacc_core.model import AnnotationRef, CanonicalPartition
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.score_rows import ScoreRow
from stepacc_dagster.storage.scores import Written, write_scores
from stepacc_dagster.storage.tables import score_metadata, scores
from stepacc_dagster.storage.views import current_scores
from stepacc_dagster.windows import Window
from tests.integration.storage_access import together
from tests.integration.storage_samples import MONDAY, SOURCE, TUESDAY, trace


@dataclass(frozen=True)
class MetricKey:
    """What scores may be compared within."""

    metric: str
    metric_version: str
    config_hash: str


KEY = MetricKey("agent.step_accuracy", "2.0.0", "c1")
SCORED = ScoreRow(
    "trace", "t", "scored", "s", "k", score=0.75, total_steps=4, correct_steps=3, edit_distance=1,
    expected_from="config", reference_hash="r1", steps_hash="x1", metadata={"steps": [{"op": "match"}]},
)  # fmt: skip
FAILED = replace(
    SCORED, status="failed", code="too_large", message="It is too large.", score=None, edit_distance=None, metadata={}
)


def test_an_evaluation_is_stored_whole(migrated_engine: sa.Engine) -> None:
    """Every field and the metadata can be read back, and by whom it was confirmed."""
    assert _write(migrated_engine, SCORED, run_id="run 1") == Written(1, 0)
    [row] = _rows(migrated_engine)
    fields = {name: getattr(SCORED, name) for name in ScoreRow.__slots__ if name not in ("metadata", "member")}
    assert {name: getattr(row, name) for name in fields} == fields
    assert (row.source, row.window_key, row.dagster_run_id) == (SOURCE, MONDAY.key, "run 1")
    assert MetricKey(row.metric, row.metric_version, row.config_hash) == KEY
    assert row.evaluated_at == row.confirmed_at
    assert _metadata(migrated_engine) == [SCORED.metadata]


def test_a_row_is_made_of_a_partition_and_its_evaluation() -> None:
    """Counts come from the metadata; the annotation counts only where the expectation came from it."""
    metric = get_metric("agent.step_accuracy", "2.0.0")
    spans = trace("t").spans
    annotated = CanonicalPartition("trace", "t", "s", "k", ["a", "x"], AnnotationRef(7, 1), spans)
    config = build_config(metric, {})
    [row] = ScoreRow.all_of(metric.manifest, annotated, evaluate(metric, annotated, config))
    assert (row.status, row.score, row.total_steps, row.correct_steps, row.edit_distance) == ("scored", 0.5, 2, 1, 1)
    assert (row.expected_from, row.annotation_id, row.session_id, row.task_id) == ("column", 7, "s", "k")
    assert row.reference_hash == fingerprint(["a", "x"])
    configured = build_config(metric, {"annotations": {"t": {"expected_steps": '["a"]'}}})
    [own] = ScoreRow.all_of(metric.manifest, annotated, evaluate(metric, annotated, configured))
    assert own.annotation_id is None
    bare = replace(annotated, expected_steps=None, annotation=None)
    [failed] = ScoreRow.all_of(metric.manifest, bare, evaluate(metric, bare, config))
    assert (failed.status, failed.code, failed.score) == ("failed", "missing_expected_steps", None)
    assert failed.message


def test_the_same_evaluation_again_only_confirms(migrated_engine: sa.Engine) -> None:
    """No second row; only the confirming time and run change, even if the result were another."""
    _write(migrated_engine, SCORED, run_id="run 1")
    [before] = _rows(migrated_engine)
    again = replace(SCORED, score=0.5, metadata={"other": 1})
    assert _write(migrated_engine, again, run_id="run 2") == Written(0, 1)
    [after] = _rows(migrated_engine)
    changed = {name for name in before._fields if getattr(before, name) != getattr(after, name)}
    assert changed == {"confirmed_at", "dagster_run_id"}
    assert after.confirmed_at > before.confirmed_at
    assert _metadata(migrated_engine) == [SCORED.metadata]


@pytest.mark.parametrize(
    "change",
    [
        {"partition_type": "session"},
        {"partition_id": "u"},
        {"reference_hash": "r2"},
        {"reference_hash": None},
        {"steps_hash": "x2"},
        {"steps_hash": None},
    ],
)
def test_any_part_of_the_key_makes_another_evaluation(migrated_engine: sa.Engine, change: dict[str, Any]) -> None:
    """Nothing in the key counts as a value of its own: it equals itself the second time."""
    other = replace(SCORED, **change)
    assert _write(migrated_engine, SCORED, other) == Written(2, 0)
    assert _write(migrated_engine, SCORED, other) == Written(0, 2)
    assert len(_metadata(migrated_engine)) == 2


def test_versions_and_configs_stand_side_by_side(migrated_engine: sa.Engine) -> None:
    """Each is current in its own right; nothing mixes them."""
    keys = [KEY, replace(KEY, metric_version="1.0.0"), replace(KEY, config_hash="c2"), replace(KEY, metric="other")]
    for place, key in enumerate(keys):
        assert _write(migrated_engine, replace(SCORED, score=place / 4), key=key) == Written(1, 0)
    current = {MetricKey(r.metric, r.metric_version, r.config_hash): r.score for r in _current(migrated_engine)}
    assert current == dict(zip(keys, (0, 0.25, 0.5, 0.75), strict=True))


def test_a_score_replaces_a_failure_and_never_the_reverse(migrated_engine: sa.Engine) -> None:
    """Of one evaluation: a run that could not score does not wipe out one that could."""
    _write(migrated_engine, FAILED, run_id="run 1")
    _write(migrated_engine, replace(FAILED, code="other", message="It failed otherwise."))
    [failed] = _rows(migrated_engine)
    assert (failed.code, failed.message) == ("too_large", "It is too large.")
    assert _write(migrated_engine, SCORED, run_id="run 2") == Written(0, 1)
    [scored] = _rows(migrated_engine)
    assert scored.id == failed.id
    assert (scored.status, scored.code, scored.message, scored.score) == ("scored", None, None, 0.75)
    assert scored.evaluated_at > failed.evaluated_at
    assert _metadata(migrated_engine) == [SCORED.metadata]
    assert _write(migrated_engine, FAILED, run_id="run 3") == Written(0, 1)
    [kept] = _rows(migrated_engine)
    assert (kept.status, kept.score, kept.evaluated_at, kept.dagster_run_id) == (
        "scored",
        0.75,
        scored.evaluated_at,
        "run 3",
    )
    assert _metadata(migrated_engine) == [SCORED.metadata]


def test_back_to_an_earlier_evaluation_makes_it_current_again(migrated_engine: sa.Engine) -> None:
    """A, B, A again: A is current, and B is still to be read."""
    other = replace(SCORED, steps_hash="x2", score=0.25)
    for row, score in ((SCORED, 0.75), (other, 0.25), (SCORED, 0.75)):
        _write(migrated_engine, row)
        assert [r.score for r in _current(migrated_engine)] == [score]
    assert len(_rows(migrated_engine)) == 2


def test_a_partition_that_moved_is_of_its_new_window(migrated_engine: sa.Engine) -> None:
    """The same evaluation follows it, and is not counted twice."""
    _write(migrated_engine, SCORED)
    _write(migrated_engine, replace(SCORED, session_id="new", task_id=None), window=TUESDAY)
    [row] = _rows(migrated_engine)
    assert (row.window_key, row.session_id, row.task_id) == (TUESDAY.key, "new", None)


def test_a_partition_given_twice_is_one_evaluation(migrated_engine: sa.Engine) -> None:
    """Of the two the scored one counts, else the last."""
    assert _write(migrated_engine, SCORED, FAILED) == Written(1, 0)
    assert _rows(migrated_engine)[0].status == "scored"


def test_odd_results_cost_no_other_row(migrated_engine: sa.Engine) -> None:
    """A score out of range, NUL in texts and NaN in metadata are stored as well as they can be."""
    odd = replace(SCORED, partition_id="a\x00", score=2, metadata={"x": math.nan, "t": "\x00\ud800"})
    sentence = replace(FAILED, partition_id="b", message="\x00")
    assert _write(migrated_engine, odd, sentence, SCORED) == Written(3, 0)
    assert _write(migrated_engine, odd, sentence, SCORED) == Written(0, 3)
    assert {"x": "NaN", "t": "\ufffd\ufffd"} in _metadata(migrated_engine)


def test_lineage_names_the_annotation_behind_a_score(migrated_engine: sa.Engine) -> None:
    """Revision, author and value as they were when it was scored, whatever was said later; or none."""
    entry = AnnotationEntry(SOURCE, "task", "k", ["a"], author="ann", note="sure", origin="f.yaml")
    with migrated_engine.begin() as conn:
        [added] = add_annotations(conn, [entry])
        add_annotations(conn, [replace(entry, value=["later"])])
    annotated = replace(SCORED, annotation_id=added.id, expected_from="column")
    _write(migrated_engine, annotated, replace(SCORED, partition_type="session", partition_id="s"), run_id="run 1")
    with migrated_engine.connect() as conn:
        rows = {r.partition_type: r for r in conn.execute(sa.text("SELECT * FROM stepacc.score_lineage"))}
    of_trace, of_session = rows["trace"], rows["session"]
    assert (of_trace.annotation_id, of_trace.annotation_revision) == (added.id, 1)
    assert (of_trace.annotation_author, of_trace.annotation_value) == ("ann", ["a"])
    assert (of_trace.trace_id, of_trace.session_id, of_trace.dagster_run_id) == ("t", "s", "run 1")
    assert (of_session.annotation_id, of_session.trace_id, of_session.session_id) == (None, None, "s")


def test_an_annotation_behind_a_score_cannot_be_deleted(migrated_engine: sa.Engine) -> None:
    """Lineage would point nowhere."""
    with migrated_engine.begin() as conn:
        [added] = add_annotations(conn, [AnnotationEntry(SOURCE, "trace", "t", ["a"])])
    _write(migrated_engine, replace(SCORED, annotation_id=added.id))
    with pytest.raises(sa.exc.IntegrityError), migrated_engine.begin() as conn:
        conn.execute(sa.text("DELETE FROM stepacc.annotations"))


def test_writers_at_once_leave_one_row_per_evaluation(migrated_engine: sa.Engine) -> None:
    """Whoever comes second confirms."""
    rows = [replace(SCORED, partition_id=f"t{n}") for n in range(400)]
    written = together(
        partial(_write, migrated_engine, *rows),
        partial(_write, migrated_engine, *reversed(rows)),
        partial(_write, migrated_engine, *rows, window=TUESDAY),
    )
    assert sum(w.inserted for w in written) == 400
    assert sum(w.confirmed for w in written) == 800
    assert len(_rows(migrated_engine)) == len(_metadata(migrated_engine)) == 400


def test_current_scores_of_a_window_do_not_read_the_others(migrated_engine: sa.Engine) -> None:
    """The window's filter reaches the index through the view."""
    with migrated_engine.begin() as conn:
        conn.execute(
            sa.text("""
                INSERT INTO stepacc.scores (source, window_key, partition_type, partition_id, metric, metric_version,
                                            config_hash, status, score)
                SELECT 'support', 'window ' || n % 500, 'trace', 't' || n, 'm', '2.0.0', 'c', 'scored', 0.5
                FROM generate_series(1, 50000) n
            """)
        )
        conn.execute(sa.text("ANALYZE stepacc.scores"))
        plan = conn.scalars(
            sa.text("""
                EXPLAIN SELECT avg(score) FROM stepacc.current_scores WHERE source = 'support' AND metric = 'm'
                  AND metric_version = '2.0.0' AND config_hash = 'c' AND window_key = 'window 7'
            """)
        ).all()
    assert not [line for line in plan if "Seq Scan" in line], plan


def _write(
    engine: sa.Engine, *rows: ScoreRow, window: Window = MONDAY, key: MetricKey = KEY, run_id: str | None = None
) -> Written:
    with engine.begin() as conn:
        return write_scores(
            conn,
            SOURCE,
            window,
            metric=key.metric,
            metric_version=key.metric_version,
            config_hash=key.config_hash,
            run_id=run_id,
            rows=rows,
        )


def _rows(engine: sa.Engine) -> list[Any]:
    with engine.connect() as conn:
        return list(conn.execute(sa.select(scores).order_by(scores.c.id)))


def _current(engine: sa.Engine) -> list[Any]:
    with engine.connect() as conn:
        return list(conn.execute(sa.select(current_scores)))


def _metadata(engine: sa.Engine) -> list[Any]:
    with engine.connect() as conn:
        return list(conn.scalars(sa.select(score_metadata.c.metadata)))
