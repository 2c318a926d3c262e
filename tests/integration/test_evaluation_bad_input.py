"""What bad input gets: every occurrence its own status, and no other pays for it."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from stepacc_core.model import RawSpan
from stepacc_dagster.local.outcome import RunOutcome
from tests.integration.conftest import Server
from tests.integration.evaluation_access import Workshop, open_workshop, values
from tests.integration.evaluation_samples import SOURCE, agent_trace, chain_trace, day, tool_span

BARE, BARE_TOO, MANY, BY_SQL, BY_STORAGE, UNFIT, UNTIMED, ODD, HUGE, EMPTY, MARKED = DAYS_OF_CASES = [
    f"2025-11-{number:02}" for number in range(3, 14)
]
GOOD_DAYS = [key for key in DAYS_OF_CASES if key not in (BARE_TOO, EMPTY)]
SEARCHED = ["search", "open"]
MALFORMED: list[tuple[Any, str]] = [
    ("[", "invalid_annotation_json"),
    ("not a list", "invalid_annotation_json"),
    ('{"a": 1}', "invalid_expected_steps"),
    (7, "invalid_expected_steps"),
    ({"steps": ["a"]}, "invalid_expected_steps"),
    ([], "invalid_expected_steps"),
    ([[]], "invalid_expected_steps"),
    (["search", 7], "invalid_expected_steps"),
    (["search", ""], "invalid_expected_steps"),
    ([["search", ["open"]]], "nested_group"),
]
MARKUP = [
    "a|b",
    "a\\|b",
    "a\\\\|b",
    "a\nb\r\nc\x0bd\u2028e",
    "`code`",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![x](http://example.org/x.png)",
    "**bold** __init__ ~~gone~~",
    "&lt;b&gt;",
    "\u202e\x00",
    "n" * 100_000,
]
MARKED_IDS = [f"marked {place} {name[:40]}" for place, name in enumerate(MARKUP)]


@dataclass(frozen=True)
class Cases(Workshop):
    """The cases of this module, each on a day of its own, evaluated; read only.

    `first` is the run over the two days on which nobody annotated something, `rest` that over all other days,
    `skipping` and `strict` are those over the first day with other settings.
    """

    first: RunOutcome
    rest: RunOutcome
    skipping: RunOutcome
    strict: RunOutcome
    by_id: dict[str, Any]


@pytest.fixture(scope="module")
def cases(server: Server, _migrated_template: str, _dagster_template: str) -> Iterator[Cases]:
    with open_workshop(server, _migrated_template, _dagster_template) as workshop:
        _land_and_annotate(workshop)
        first = workshop.run(BARE, BARE_TOO)
        rest = workshop.run(*DAYS_OF_CASES[2:], max_partitions_per_run=20)
        by_id = {row.partition_id: row for row in workshop.scores()}
        strict = workshop.run(BARE, config={"scoring_method": "strict_position"})
        skipping = workshop.run(BARE, partition_types={"trace": "skip"})
        yield Cases(workshop.instance, workshop.engine, first, rest, skipping, strict, by_id)


def _land_and_annotate(workshop: Workshop) -> None:
    """Land the cases, and on most days a good trace beside them."""
    start = day(ODD).start_ns
    odd = {name: agent_trace(name, ODD, *SEARCHED) for name in ("early", "twice", "astray", "circle")}
    odd["early"][1] = replace(odd["early"][1], end_time_unix_nano=start)
    odd["twice"] *= 2
    odd["astray"][2] = replace(odd["astray"][2], parent_span_id="nowhere")
    odd["circle"][1] = replace(odd["circle"][1], parent_span_id="s2")
    odd["circle"][2] = replace(odd["circle"][2], parent_span_id="s1")
    late = tool_span("untimed", "s9", "open", None)
    good = [agent_trace(f"good {key}", key, *SEARCHED) for key in GOOD_DAYS]
    annotated = [
        *good,
        *odd.values(),
        [*agent_trace("untimed", UNTIMED, "search"), late],
        [*agent_trace("zero", UNTIMED, "search"), replace(late, trace_id="zero", start_time_unix_nano=0)],
        agent_trace("huge", HUGE, *SEARCHED * 5_000),
        chain_trace("plain", UNFIT),
    ]
    workshop.land(
        *annotated,
        agent_trace("bare", BARE, "search"),
        agent_trace("bare too", BARE_TOO, "search"),
        agent_trace("grouped", BARE, *SEARCHED),
        *(chain_trace(f"chain {n:02}", MANY) for n in range(30)),
        agent_trace("z", MANY, "search"),
        *(agent_trace(f"{key} {n}", key, "search") for key in (BY_SQL, BY_STORAGE) for n in range(len(MALFORMED))),
        [RawSpan("strange", "root", "GET /", None, day(UNFIT).start_ns + 5, day(UNFIT).start_ns + 9)],
        *(agent_trace(ident, MARKED, name, name) for ident, name in zip(MARKED_IDS, MARKUP, strict=True)),
        agent_trace("marked bare", MARKED, "search"),
    )
    for spans in annotated:
        workshop.annotate("trace", spans[0].trace_id, SEARCHED)
    workshop.annotate("trace", "grouped", [SEARCHED])
    for ident in MARKED_IDS:
        workshop.annotate("trace", ident, [*MARKUP[:6], MARKUP])
    workshop.annotate("trace", "marked bare", [f"<b>{MARKUP[0]}{MARKUP[4]}", 7])
    for place, (value, _) in enumerate(MALFORMED):
        for key in (BY_SQL, BY_STORAGE):
            workshop.annotate("trace", f"{key} {place}", ["search"])
        workshop.annotate("trace", f"{BY_STORAGE} {place}", value)
        workshop.execute(
            "INSERT INTO stepacc.annotations (source, target_type, target_id, partition_type, key, revision, value, "
            "value_hash, author, note, origin) VALUES (:source, 'trace', :id, 'trace', 'expected_steps', 2, "
            "CAST(:value AS jsonb), 'any', 'a', '', 'psql')",
            source=SOURCE,
            id=f"{BY_SQL} {place}",
            value=json.dumps(value),
        )


def test_no_bad_case_costs_a_run_or_a_good_trace_anything(cases: Cases) -> None:
    assert all(run.success for run in (cases.first, cases.rest, cases.skipping, cases.strict))
    good = {f"good {key}" for key in GOOD_DAYS}
    assert {ident: cases.by_id[ident].score for ident in good} == dict.fromkeys(good, 1.0)


def test_an_occurrence_nobody_annotated_fails_alone_and_the_check_names_it(cases: Cases) -> None:
    for ident in ("bare", "bare too"):
        row = cases.by_id[ident]
        assert (row.status, row.code, row.score) == ("failed", "missing_expected_steps", None)
        assert ident in row.message
    check = cases.checks(cases.first)["every_occurrence_has_expected_steps"]
    assert not check.passed
    shown = values(check)
    assert (shown["failed"], shown["missing_expected_steps"]) == (2, 2)
    assert shown["failed_by_partition"] == {key: {"missing_expected_steps": 1} for key in (BARE, BARE_TOO)}
    assert shown["which"] == [
        f"{BARE}: trace bare (missing_expected_steps)",
        f"{BARE_TOO}: trace bare too (missing_expected_steps)",
    ]
    metadata = cases.metadata("step_accuracy_scores", BARE_TOO)
    assert metadata["failed_by_code"] == {"missing_expected_steps": 1}
    assert "bare too" in metadata["without_score"]
    assert metadata["coverage"] == 0.0
    assert metadata["worst"] == "Nothing was scored."


def test_the_coverage_check_names_the_partitions_that_have_no_score_at_all(cases: Cases) -> None:
    check = cases.checks(cases.first)["coverage"]
    assert not check.passed
    assert values(check)["partitions_without_a_score"] == [BARE_TOO]
    assert (values(check)["scored"], values(check)["occurrences"]) == (2, 4)
    assert cases.checks(cases.rest)["coverage"].passed


def test_failures_are_named_however_much_is_not_applicable(cases: Cases) -> None:
    named = values(cases.checks(cases.rest)["every_occurrence_has_expected_steps"])["which"]
    assert f"{MANY}: trace z (missing_expected_steps)" in named
    assert "trace z " in cases.metadata("step_accuracy_scores", MANY)["without_score"].splitlines()[2].replace("`", "")


def test_skipping_what_nobody_annotated_writes_no_row_and_counts_it(cases: Cases) -> None:
    confirmed = cases.rows("SELECT * FROM stepacc.scores WHERE dagster_run_id = :run", run=cases.skipping.run_id)
    assert {row.partition_id for row in confirmed} == {f"good {BARE}", "grouped"}
    checks = cases.checks(cases.skipping)
    assert all(check.passed for check in checks.values())
    coverage = values(checks["coverage"])
    assert (coverage["occurrences"], coverage["scored"], coverage["skipped_unannotated"]) == (3, 2, 1)
    metadata = cases.metadata("step_accuracy_scores", BARE)
    assert (metadata["dagster/partition_row_count"], metadata["skipped_unannotated"]) == (2, 1)


@pytest.mark.parametrize("key", [BY_SQL, BY_STORAGE], ids=["written by SQL", "written by the storage"])
def test_a_malformed_annotation_fails_its_occurrence_with_code_and_revision(cases: Cases, key: str) -> None:
    rows = [cases.by_id[f"{key} {place}"] for place in range(len(MALFORMED))]
    assert [(row.status, row.code) for row in rows] == [("failed", code) for _, code in MALFORMED]
    for row in rows:
        assert row.annotation_revision == 2
        assert f"Annotation {row.annotation_id}, revision 2" in row.message
    assert cases.metadata("step_accuracy_scores", key)["failed"] == len(MALFORMED)


def test_a_group_under_strict_position_fails_its_occurrence_only(cases: Cases) -> None:
    rows = {r.partition_id: r for r in cases.scores() if r.dagster_run_id == cases.strict.run_id}
    assert (rows[f"good {BARE}"].status, rows[f"good {BARE}"].score) == ("scored", 1.0)
    assert (rows["grouped"].status, rows["grouped"].code) == ("failed", "group_under_strict_position")
    assert rows["grouped"].annotation_revision == 1


def test_a_trace_without_tools_agents_or_models_is_not_applicable(cases: Cases) -> None:
    for ident in ("plain", "strange"):
        row = cases.by_id[ident]
        assert (row.status, row.reason, row.score) == ("not_applicable", "no_required_kinds", None)
    metadata = cases.metadata("step_accuracy_scores", UNFIT)
    assert metadata["not_applicable_by_reason"] == {"no_required_kinds": 2}
    assert metadata["failed"] == 0


def test_a_step_without_a_start_time_fails_and_is_not_guessed(cases: Cases) -> None:
    assert [cases.by_id[ident].code for ident in ("untimed", "zero")] == ["missing_start_time"] * 2
    assert [cases.by_id[ident].window_key for ident in ("untimed", "zero")] == [UNTIMED] * 2


def test_spans_that_end_early_come_twice_or_hang_in_the_air_are_scored_as_the_contract_says(cases: Cases) -> None:
    names = ("early", "twice", "astray", "circle")
    assert {name: cases.by_id[name].score for name in names} == dict.fromkeys(names, 1.0)
    gaps = {row.trace_id: {gap["kind"] for gap in row.gaps} for row in cases.rows("SELECT * FROM stepacc.traces")}
    usual = gaps[f"good {ODD}"]
    assert {name: bool(gaps[name] - usual) for name in names} == {
        "early": True,
        "twice": False,
        "astray": True,
        "circle": True,
    }


def test_ten_thousand_spans_in_one_trace_are_scored_beside_the_others(cases: Cases) -> None:
    row = cases.by_id["huge"]
    assert row.score == pytest.approx(2 / 10_000)
    [(observed,)] = cases.rows(
        "SELECT jsonb_array_length(metadata->'actual_steps') FROM stepacc.score_metadata WHERE score_id = :id",
        id=row.score_id,
    )
    assert observed == 10_000


def test_a_window_with_zero_traces_materialises_with_zero_rows_and_says_so(cases: Cases) -> None:
    ingested = cases.metadata("canonical_traces", EMPTY)
    assert ingested["dagster/partition_row_count"] == 0
    assert ingested["note"] == "No trace of this source starts in this window."
    scored = cases.metadata("step_accuracy_scores", EMPTY)
    assert scored["dagster/partition_row_count"] == 0
    assert scored["note"] == "There is nothing to score in this window."
    assert not {"mean_score", "coverage"} & set(scored)
    assert cases.metadata("step_accuracy_metadata", EMPTY)["dagster/partition_row_count"] == 0
    assert not cases.rows("SELECT 1 FROM stepacc.scores WHERE window_key = :key", key=EMPTY)


def test_names_from_traces_stay_inside_their_cells_and_are_no_markup(cases: Cases) -> None:
    shown = cases.metadata("step_accuracy_scores", MARKED)
    for table, columns in ((shown["worst"], 4), (shown["without_score"], 3)):
        assert {_cells(line) for line in table.split("\n")} == {columns}
        assert len(table) < 30_000
        for markup in ("<img", "<b>", "[click](", "![x](", "**bold", "__init__", "~~gone", "`code"):
            assert markup not in re.sub(r"\\.", "", table)
    assert len(shown["worst"].split("\n")) == 2 + 10
    assert "javascript" in shown["worst"]


def _cells(line: str) -> int:
    """Count the cells of a table's row as GitHub's Markdown does: a bar after a backslash parts nothing."""
    bars, place = 0, 0
    while place < len(line):
        bars += line[place] == "|"
        place += 2 if line[place] == "\\" else 1
    return bars - 1
