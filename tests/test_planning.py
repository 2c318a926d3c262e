"""What is asked for, of a sensor or of a backfill, where a source is scored by several metrics."""

from datetime import UTC, datetime
from typing import Any

from stepacc_dagster.backfills import CHANGED_HERE, NEVER_INGESTED, NEVER_SCORED, Planned, plan
from stepacc_dagster.requests import Ask, runs
from stepacc_dagster.storage.due import DueWindow, WindowState

NOW = datetime(2025, 11, 10, tzinfo=UTC)
KEYS = [f"2025-11-0{day}" for day in range(1, 7)]
ONE, OTHER = "agent.one", "agent.other"


def state(key: str, **fields: Any) -> WindowState:
    """Return a window that is up to date, but for what is given."""
    good = {
        "window_key": key, "change": 1, "ingested_change": 1, "content": 1, "scored_content": 1, "traces": 1,
        "ingested_at": NOW, "requested": None, "requests": None, "request_again_at": None, "ingest_due": False,
        "ingest_problem": None, "score_due": False, "other_version": False, "due_at": None, "unsettled": 0, "scored": 1,
        "failed": 0, "not_applicable": 0, "skipped": 0, "score_problem": None, "token": "t", "now": NOW,
    }  # fmt: skip
    return WindowState(**{**good, **fields})


def due(key: str, *metrics: str, ingest: bool = False) -> DueWindow:
    return DueWindow(key, ingest, metrics, "token", None, None, NOW)


def test_each_window_is_planned_once_with_the_metrics_that_it_is_out_of_date_for() -> None:
    first, second, third = KEYS[:3]
    changed = {"score_due": True, "content": 2}
    never = {"score_due": True, "scored": None, "scored_content": None}
    states = {
        ONE: [state(first, **changed), state(second), state(third, **changed)],
        OTHER: [state(first), state(second), state(third, **never)],
    }
    assert plan(states, KEYS, "stale") == [
        Planned(first, ingest=False, why=CHANGED_HERE, metrics=(ONE,)),
        Planned(third, ingest=False, why=f"{CHANGED_HERE}; {NEVER_SCORED}", metrics=(ONE, OTHER)),
    ]


def test_a_window_that_is_ingested_is_scored_by_all_metrics() -> None:
    new = state(KEYS[0], ingest_due=True, ingested_at=None)
    [planned] = plan({ONE: [new], OTHER: [new]}, KEYS, "stale")
    assert planned == Planned(KEYS[0], ingest=True, why=NEVER_INGESTED, metrics=(ONE, OTHER))
    failed = state(KEYS[0], ingest_problem="It failed.")
    [again] = plan({ONE: [failed], OTHER: [failed]}, KEYS, "failed")
    assert (again.ingest, again.metrics, again.problem) == (True, (ONE, OTHER), "It failed.")


def test_what_failed_by_one_metric_is_tried_again_by_that_one() -> None:
    states = {ONE: [state(KEYS[0])], OTHER: [state(KEYS[0], score_problem="It failed.")]}
    [planned] = plan(states, KEYS, "failed")
    assert (planned.ingest, planned.metrics, planned.problem) == (False, (OTHER,), "It failed.")


def test_a_run_takes_neighbours_that_are_out_of_date_for_the_same_metrics() -> None:
    asks = [
        Ask.of(each)
        for each in (
            due(KEYS[5], ONE, OTHER, ingest=True),
            due(KEYS[4], ONE, OTHER),
            due(KEYS[3], OTHER),
            due(KEYS[2], OTHER),
            due(KEYS[0], OTHER),
        )
    ]
    found = [(run.keys, run.ingest, run.metrics) for run in runs(asks, KEYS, size=10, limit=10)]
    assert found == [
        ((KEYS[5],), True, (ONE, OTHER)),
        ((KEYS[4],), False, (ONE, OTHER)),
        ((KEYS[2], KEYS[3]), False, (OTHER,)),
        ((KEYS[0],), False, (OTHER,)),
    ]


def test_a_window_was_asked_for_as_it_stands_when_the_run_had_its_token_among_those_of_all_metrics() -> None:
    assert state(KEYS[0], requested="s | t").asked
    assert not state(KEYS[0], requested="s | tt").asked
    assert not state(KEYS[0]).asked
