"""The short form of the soak, and that what it compares by can tell when something is wrong."""

from datetime import UTC, datetime

import pytest

from tests.integration.test_cli_dev import needs_proc
from tests.soak.happenings import happenings
from tests.soak.outcome import comparable, differences
from tests.soak.report import Report, Settings
from tests.soak.soak import soak

BEGIN = datetime(2026, 3, 1, 0, 20, tzinfo=UTC)
SCORE = {"metric_version": "2.0.0", "is_current": True, "score": 0.5}
ROWS = {"scores": [SCORE], "current_scores": [SCORE], "window_scores": [{"metric_version": "2.0.0", "scored": 1}]}


pytestmark = pytest.mark.timeout(3_600)  # the longest of all files, so that it begins first


@pytest.fixture(scope="module")
def report() -> Report:
    """The soak of two minutes, and then some to settle and compare."""
    made = soak(Settings(seconds=120, seed=7))
    print(made)  # noqa: T201 (for `pytest -rP`)
    return made


@needs_proc
@pytest.mark.slow
def test_what_was_disturbed_for_two_minutes_has_the_rows_of_what_nobody_disturbed(report: Report) -> None:
    assert not report.differing, str(report)


@needs_proc
@pytest.mark.slow
def test_nothing_hangs_and_nothing_is_left_over(report: Report) -> None:
    """Runs, slots of pools, connections, locks, processes; and the command ends only for a known cause."""
    assert not report.hanging, str(report)


@needs_proc
@pytest.mark.slow
def test_all_that_can_be_done_to_it_was_done(report: Report) -> None:
    """And schedule and sensor both had runs that succeeded."""
    assert not report.untried, str(report)


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
