"""A report whose every text tries to be more than text."""

from datetime import UTC, datetime
from typing import Any

from stepacc_dagster.report.model import (
    Bin,
    Coverage,
    MemberMean,
    Reason,
    Report,
    StepCount,
    StepFaults,
    Tasks,
    TaskScores,
    TrendPoint,
    View,
    WorstScore,
)

HOSTILE = "<script>document.title = 'taken'</script>"
SEARCHED = "refund_damaged_item"


REASONS = (
    Reason("failed", "missing_expected_steps", 3, f"No steps: {HOSTILE}", "b" * 32),
    Reason("not_applicable", "content_not_recorded", 2, None, HOSTILE),
)


def entry(op: str, expected: str | None, actual: str | None) -> dict[str, Any]:
    """Return one entry of an alignment."""
    return {"op": op, "expected": expected, "actual": actual, "expected_index": 0, "actual_index": 0}


def worst(name: str, task: str | None, score: float) -> WorstScore:
    """Return an occurrence with one step missing and one of a hostile name too much."""
    steps = [entry("match", "search", "search"), entry("delete", "answer", None), entry("insert", None, HOSTILE)]
    metadata = {"steps": steps, "correct_steps": 1, "total_steps": 2, "edit_distance": 2}
    return WorstScore(
        name, task, "2026-11-02", score, "1b2c3d4e-run", f"annotation 7 of task {task}, revision 2", name, metadata
    )


def view(**settings: Any) -> View:
    """Return the scores of traces by one metric."""
    given: dict[str, Any] = {
        "metric": "agent.step_accuracy",
        "headline": "agent.step_accuracy",
        "display_name": "Step Accuracy",
        "version": "2.0.0",
        "config_hash": "0123456789abcdef",
        "partition_type": "trace",
        "lower_is_better": False,
        "mean": 0.75,
        "trend": tuple(TrendPoint(f"2026-11-{day:02}", "2.0.0", 4, 0.5 + day / 100) for day in range(1, 29)),
        "bins": (*(Bin(f"{place / 10:.1f}", place) for place in range(10)), Bin("1.0", 12)),
        "coverage": Coverage(57, REASONS, 2, 1),
        "faults": StepFaults(
            missing=(StepCount("answer", None, 1_234, 56),),
            extra=(StepCount(None, HOSTILE, 7, 7),),
            substituted=(StepCount("charge", None, 2, 1),),
            confusions=(StepCount("charge", "refund " * 30, 2, 1),),
        ),
        "tasks": Tasks((TaskScores(SEARCHED, 40, 0, 0.5, 0.0), TaskScores(HOSTILE, 17, 3, None, None)), 2),
        "worst": (worst("a" * 32, SEARCHED, 0.25), worst(HOSTILE, None, 0.5)),
        "members": (),
    }
    return View(**{**given, **settings})


def report(*views: View) -> Report:
    """Return a report with hostile names, of traces and sessions unless views are given."""
    members = (MemberMean("trajectory_match.passed", 4, 0.5), MemberMean("trajectory_match.f1", 4, 0.875))
    shown = views or (view(), view(display_name="Trajectory Match", partition_type="session", members=members))
    return Report(HOSTILE, "2026-11-01", "2026-11-28", datetime(2026, 11, 30, 12, tzinfo=UTC), shown)
