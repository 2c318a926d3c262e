"""What a window amounts to, while its occurrences pass by once."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.errors import FailureCode
from stepacc_core.metrics import Evaluation, Reference
from stepacc_core.metrics.base import ReferenceOrigin
from stepacc_core.model import AnnotationRef, CanonicalPartition, CanonicalSpan, Failure, Member, Result
from stepacc_dagster.tally import Spread, WindowTally


def partition(ident: str) -> CanonicalPartition:
    return CanonicalPartition("trace", ident)


def scored(score: float, **metadata: object) -> Evaluation:
    return Evaluation(Result("scored", score, metadata), None, "reference", "steps")


def failed(code: FailureCode = FailureCode.MISSING_EXPECTED_STEPS) -> Evaluation:
    return Evaluation(Result("failed", error=Failure(code, f"It failed: {code}.")), None, None, None)


NOT_APPLICABLE = Evaluation(Result("not_applicable", reason="no_required_kinds"), None, None, None)


def tally(*evaluations: Evaluation | None) -> WindowTally:
    """Return the tally of occurrences in order; None stands for a skipped one."""
    result = WindowTally()
    for place, evaluation in enumerate(evaluations):
        if evaluation is None:
            result.skip()
        else:
            result.add(partition(f"t{place:03}"), evaluation)
    return result


def test_an_empty_window_has_neither_mean_nor_coverage() -> None:
    empty = tally()
    assert (empty.occurrences, empty.rows, empty.spreads, empty.coverage) == (0, 0, {}, None)
    assert Spread().mean is None


@given(st.lists(st.sampled_from(["failed", "none", "skipped"]) | st.floats(0, 1)))
def test_counts_and_mean_are_those_of_the_occurrences(kinds: list[str | float]) -> None:
    made = {"failed": failed(), "none": NOT_APPLICABLE, "skipped": None}
    found = tally(*(made[kind] if isinstance(kind, str) else scored(kind) for kind in kinds))
    scores = [kind for kind in kinds if not isinstance(kind, str)]
    assert (found.occurrences, found.scored, found.skipped) == (len(kinds), len(scores), kinds.count("skipped"))
    assert found.rows == len(kinds) - kinds.count("skipped")
    assert (found.failed.total(), found.not_applicable.total()) == (kinds.count("failed"), kinds.count("none"))
    spread = found.spreads.get("trace", Spread())
    assert (spread.least, spread.greatest) == (min(scores, default=None), max(scores, default=None))
    assert spread.mean is None if not scores else abs((spread.mean or 0) - sum(scores) / len(scores)) < 1e-9
    assert [entry.score for entry in found.worst] == sorted(scores)[:10]


def test_traces_and_sessions_have_means_of_their_own() -> None:
    found = tally(scored(1.0), scored(0.5))
    found.add(CanonicalPartition("session", "s"), scored(0.0))
    assert {kind: (each.mean, each.least, each.scored) for kind, each in found.spreads.items()} == {
        "trace": (0.75, 0.5, 2),
        "session": (0.0, 0.0, 1),
    }
    assert found.scored == 3


def test_of_equal_scores_the_worst_are_ordered_by_id() -> None:
    found = WindowTally()
    for ident in ("c", "a", "b"):
        found.add(partition(ident), scored(0.5))
    assert [entry.partition_id for entry in found.worst] == ["a", "b", "c"]


def test_the_first_twenty_failures_are_named_whatever_else_is_not_scored() -> None:
    found = tally(*[NOT_APPLICABLE] * 50, *[failed()] * 30)
    assert [entry.partition_id for entry in found.failures] == [f"t{place:03}" for place in range(50, 70)]
    assert (found.failed.total(), found.not_applicable.total()) == (30, 50)
    assert len(found.inapplicable) == 10


def test_failures_are_counted_by_code() -> None:
    found = tally(failed(), failed(FailureCode.TOO_LARGE), failed(FailureCode.TOO_LARGE))
    assert found.failed == {"missing_expected_steps": 1, "too_large": 2}


def test_the_revisions_are_those_that_evaluations_were_measured_against_each_once() -> None:
    found = WindowTally()
    given: list[tuple[str, int, ReferenceOrigin]] = [
        ("a", 7, "column"),
        ("b", 7, "column"),
        ("c", 3, "column"),
        ("d", 9, "config"),
    ]
    for ident, annotation, origin in given:
        annotated = replace(partition(ident), annotation=AnnotationRef(annotation, 1))
        found.add(annotated, replace(scored(0.5), reference=Reference(["x"], origin)))
    found.add(partition("e"), replace(scored(0.5), reference=Reference(["x"], "config")))
    assert (found.revisions, found.annotated) == ({3, 7}, 4)


def test_what_is_named_knows_its_trace_and_a_session_its_first_one() -> None:
    spans = tuple(CanonicalSpan(ident, "root", "CHAIN", "run") for ident in ("first", "second"))
    session = CanonicalPartition("session", "chat", spans=spans)
    found = WindowTally()
    for each in (partition("t"), session, CanonicalPartition("session", "empty")):
        found.add(each, scored(0.5))
        found.add(each, failed())
        found.add(each, NOT_APPLICABLE)
    named = {"t": "t", "chat": "first", "empty": None}
    for entries in (found.worst, found.failures, found.inapplicable):
        assert {entry.partition_id: entry.trace_id for entry in entries} == named


def test_scores_out_of_range_are_remembered() -> None:
    found = tally(scored(0.0), scored(1.0), scored(1.5), scored(-0.5), scored(float("nan")))
    assert found.out_of_range == ["t002", "t003", "t004"]


def test_metadata_of_another_metric_may_call_anything_expected_steps() -> None:
    found = tally(scored(0.5, expected_steps=7, actual_steps="abc"), scored(0.6, expected_steps={"a": 1}))
    assert [(entry.expected, entry.actual) for entry in found.worst] == [((), ()), ((), ())]


def test_the_digest_changes_with_scores_steps_references_and_codes_and_with_nothing_else() -> None:
    plain = scored(0.5)
    assert str(tally(plain, plain).evaluations) == str(tally(plain, scored(0.5, why="other words")).evaluations)
    others = [
        tally(plain),
        tally(plain, plain),
        tally(plain, scored(0.25)),
        tally(plain, Evaluation(plain.result, None, "another", "steps")),
        tally(plain, Evaluation(plain.result, None, "reference", "other")),
        tally(plain, failed()),
        tally(plain, failed(FailureCode.TOO_LARGE)),
        tally(plain, NOT_APPLICABLE),
    ]
    assert len({str(other.evaluations) for other in others}) == len(others)


def member(name: str, score: float | None) -> Member:
    return Member(name, "scored", score) if score is not None else Member(name, "not_applicable", reason="none")


def test_the_members_of_a_family_are_counted_apart_and_what_the_metric_says_beside_them() -> None:
    told = {
        "verdict": "fail",
        "forbidden": ["delete", ["cancel", "charge"]],
        "gaps": [{"kind": "orphan"}, {"kind": "orphan"}],
        "assumptions": [{"kind": "unconfirmed_reference", "reference": "guess"}, {"kind": "other"}],
    }
    results = [
        Result("scored", 0.0, told, family=(member("m.passed", 0.0), member("m.f1", None))),
        Result("scored", 1.0, {"verdict": "pass"}, family=(member("m.passed", 1.0), member("m.f1", 1.5))),
    ]
    found = tally(*(Evaluation(result, None, "reference", "steps") for result in results))
    found.add(CanonicalPartition("session", "s"), Evaluation(results[1], None, "reference", "steps"))
    means = {key: (each.mean, each.scored, each.not_applicable) for key, each in found.family.members.items()}
    assert means == {
        ("trace", "m.passed"): (0.5, 2, 0),
        ("trace", "m.f1"): (1.5, 1, 1),
        ("session", "m.passed"): (1.0, 1, 0),
        ("session", "m.f1"): (1.5, 1, 0),
    }
    assert found.out_of_range == ["t001 (m.f1)", "s (m.f1)"]
    assert found.family.verdicts == {"fail": 1, "pass": 2}
    assert (found.family.gaps, found.family.unconfirmed) == ({"orphan": 1}, {"guess": 1})
    assert (found.family.forbidden, found.family.resting_on_unconfirmed) == (1, 1)
    assert found.family.forbidden_seen == ["trace t000: delete, cancel then charge"]


def test_metadata_that_another_metric_calls_so_say_nothing_of_a_family() -> None:
    strange = {"verdict": 1, "gaps": "none", "assumptions": {"kind": "unconfirmed_reference"}, "forbidden": []}
    found = tally(scored(0.5, **strange))
    assert (found.family.members, found.family.verdicts, found.family.gaps) == ({}, {}, {})
    assert (found.family.unconfirmed, found.family.forbidden) == ({}, 0)
