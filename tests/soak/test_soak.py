"""The short form of the soak, and that what it compares by can tell when something is wrong."""

from datetime import UTC, datetime

import pytest

from tests.integration.test_cli_dev import needs_proc
from tests.soak.happenings import happenings
from tests.soak.outcome import comparable, differences
from tests.soak.report import Settings
from tests.soak.soak import soak

BEGIN = datetime(2026, 3, 1, 0, 20, tzinfo=UTC)
SCORE = {"metric_version": "2.0.0", "is_current": True, "score": 0.5}
ROWS = {"scores": [SCORE], "current_scores": [SCORE], "window_scores": [{"metric_version": "2.0.0", "scored": 1}]}


@needs_proc
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_what_was_disturbed_for_a_minute_ends_as_what_nobody_disturbed() -> None:
    report = soak(Settings(seconds=60, seed=7))
    print(report)  # noqa: T201 (for `pytest -rP`)
    assert not report.problems, str(report)


def test_the_same_seed_and_moment_give_the_same_happenings() -> None:
    one, again, other = ([each.what for each in happenings(seed, BEGIN, 300)] for seed in (1, 1, 2))
    assert one == again != other
    kinds = ("traces of", "late", "older", "again", "annotated", "withdrawn")
    assert [kind for kind in kinds if not any(kind in what for what in one)] == []


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([SCORE], []),
        ([], ["scores: 1 rows missing"]),
        ([SCORE, SCORE], ["scores: 1 rows too many"]),
        ([{**SCORE, "score": 0.25}], ["scores: 1 rows too many", "scores: 1 rows missing"]),
        ([SCORE, {**SCORE, "is_current": False}], []),
        ([SCORE, {**SCORE, "metric_version": "1.0.0"}], []),
    ],
)
def test_a_row_that_differs_is_told(scores: list[object], said: list[str]) -> None:
    found = comparable({**ROWS, "scores": scores}, "2.0.0")
    told = list(differences(found, comparable(ROWS, "2.0.0")))
    assert [sentence[: len(start)] for sentence, start in zip(told, said, strict=True)] == said


def test_a_comparison_of_nothing_with_nothing_is_told() -> None:
    assert list(differences({"scores": []}, {"scores": []})) == [
        "scores: nothing was expected, so nothing was compared"
    ]
