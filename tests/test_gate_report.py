"""The decision of a gate as JSON and as JUnit XML."""

from stepacc_core.comparison.forbidden import ForbiddenSearch
from stepacc_core.comparison.gate import Criteria, Evidence, decide
from stepacc_core.comparison.observations import Selection
from stepacc_dagster.gate_report import document, junit
from tests.core.test_comparison import run

ALL = Selection("shop", "m", "1.0.0", "c0ffee00", "trace")
DAY = Selection("shop", "m", "1.0.0", "c0ffee00", "trace", "2026-11-03", "2026-11-03")


def test_no_document_shows_what_stands_for_a_range_that_nobody_gave() -> None:
    everything = decide(Criteria(min_mean=0.5), Evidence(ALL, (run("a", 1.0),)))

    assert {"first": None, "last": None}.items() <= document(everything)["selection"].items()
    assert b"~" not in junit(everything)
    assert b'name="last"' not in junit(everything)
    ranged = decide(Criteria(min_mean=0.5), Evidence(DAY, (run("a", 1.0),)))
    assert b'name="last" value="2026-11-03"' in junit(ranged)


def test_the_document_counts_where_nobody_looked_for_forbidden_steps() -> None:
    search = ForbiddenSearch((), looked_at=1, failed=3, without_row=4)
    found = document(decide(Criteria(no_forbidden=True), Evidence(ALL, (run("a", 1.0),), 4, search)))

    assert (found["forbidden"], found["forbidden_looked_at"]) == ([], 1)
    assert found["forbidden_not_looked_at"] == {"failed": 3, "without an evaluation": 4}
    unasked = document(decide(Criteria(min_mean=0.5), Evidence(ALL, (run("a", 1.0),))))
    assert (unasked["forbidden_looked_at"], unasked["forbidden_not_looked_at"]) == (None, None)
