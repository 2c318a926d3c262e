"""`stepacc diff` and `stepacc gate` over scores that real runs made: versions, ranges, revisions, baselines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import sqlalchemy as sa

from stepacc_core.annotations import TargetType
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.ingest import ingest_window
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import MetricChoice
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.comparison import compare_versions
from stepacc_dagster.storage.raw_spans import land_spans
from stepacc_dagster.stores.factory import build_store
from tests.cli_access import stepacc
from tests.integration.conftest import Server, opened
from tests.integration.evaluation_access import support_source
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, agent_trace, day

GOOD = ("search", "pay")
BAD = ("hello", "search")


def evaluate(engine: sa.Engine, *keys: str, version: str, metric: str = "agent.step_accuracy") -> None:
    """Ingest and score windows as a run does, without the time that starting runs takes."""
    source = support_source(metric=MetricChoice(metric, version))
    store = build_store(source.store, engine, SOURCE)
    for key in keys:
        ingest_window(engine, store, source, day(key))
        score_window(engine, source, evaluator_of(source), day(key), "no run")


@pytest.fixture(scope="module")
def shop(server: Server, _migrated_template: str) -> Iterator[sa.Engine]:
    """Six good refunds on Monday, of which one says hello first, and six bad ones on Tuesday; scored by two versions.

    The order's expectation is revised before Tuesday is scored once more by the newer version.
    """
    with server.database(_migrated_template) as url, opened(url) as engine:
        traces = [
            *(agent_trace(f"m{n}", MONDAY, *GOOD, task="refund") for n in range(5)),
            agent_trace("m5", MONDAY, "hello", *GOOD, task="refund"),
            *(agent_trace(f"t{n}", TUESDAY, *BAD, task="refund") for n in range(6)),
            agent_trace("mo", MONDAY, "look", task="order"),
            agent_trace("to", TUESDAY, "look", task="order"),
            agent_trace("tx", TUESDAY, "look", task="nobody annotated this"),
        ]
        with engine.begin() as connection:
            land_spans(connection, SOURCE, [span for spans in traces for span in spans])
        annotate(engine, "refund", list(GOOD))
        annotate(engine, "order", ["look"])
        evaluate(engine, MONDAY, TUESDAY, version="1.0.0")
        evaluate(engine, MONDAY, TUESDAY, version="2.0.0")
        annotate(engine, "order", ["look", "buy"])
        evaluate(engine, TUESDAY, version="2.0.0")
        yield engine


def annotate(engine: sa.Engine, target: str, steps: list[str], kind: TargetType = "task") -> None:
    """Say what a task or a trace should do."""
    with engine.begin() as connection:
        add_annotations(connection, [AnnotationEntry(SOURCE, kind, target, steps)])


@pytest.fixture(autouse=True)
def _of_the_shop(shop: sa.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let commands find the shop's database."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", shop.url.render_as_string(hide_password=False))
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))


def asked(*words: str) -> tuple[int, dict[str, Any]]:
    """Run a command for JSON, and return its exit code and its one document."""
    said = stepacc(*words, "--source", SOURCE, "--json")
    [document] = said.rows
    return said.code, document


def test_versions_are_paired_trace_by_trace_and_what_another_revision_changed_is_told_apart() -> None:
    code, found = asked("diff", "version=1.0.0", "version=2.0.0")

    assert code == 0
    assert (found["differs"], found["paired_by"], found["pairs"]) == (["version"], "occurrence", 13)
    assert (found["before"]["scored"], found["before"]["failed"]) == (14, 1)
    # by position nothing of `hello, search, pay` is right, by edits all but one step
    assert found["change"]["mean"] == pytest.approx(2 / 3 / 13)
    assert found["change"]["low"] < found["change"]["mean"] < found["change"]["high"]
    assert (found["rose"], found["fell"]) == (1, 0)
    assert found["other_reference"]["names"] == ["to"]
    assert found["changed"][0]["name"] == "m5"
    assert found["changed"][0]["causes"] == ["version"]
    assert "hello" in found["changed"][0]["pictures"]["before"]
    assert found["before_only"] == found["after_only"] == []


def test_the_same_question_gives_the_same_answer() -> None:
    words = ("diff", "version=1.0.0", "version=2.0.0", "--source", SOURCE, "--json")
    assert stepacc(*words).out == stepacc(*words).out


def test_time_ranges_are_paired_task_by_task() -> None:
    sides = (f"from={MONDAY},to={MONDAY}", f"from={TUESDAY},to={TUESDAY}")
    code, found = asked("diff", *sides, "--metric-version", "2.0.0")

    assert code == 0
    assert (found["differs"], found["paired_by"], found["pairs"]) == (["windows"], "task", 1)
    assert found["change"]["mean"] == pytest.approx(-(5 + 2 / 3) / 6)
    assert found["change"]["unit"] == "runs"
    assert (found["changed"][0]["name"], found["changed"][0]["runs"]) == ("refund", {"before": 6, "after": 6})
    assert found["changed"][0]["causes"] == ["steps"]
    assert found["other_reference"]["names"] == ["order"]


def test_sources_are_paired_task_by_task_and_what_else_differs_is_named(shop: sa.Engine) -> None:
    columns = (
        "partition_type, partition_id, task_id, metric, metric_version, config_hash, reference_hash, status, score"
    )
    copied = f"""
        INSERT INTO stepacc.scores (source, window_key, {columns})
        SELECT 'next', window_key, {columns} FROM stepacc.current_scores
        WHERE metric_version = '2.0.0' AND window_key = :day AND status = 'scored'
    """  # noqa: S608 (names of this test)
    with shop.begin() as connection:
        connection.execute(sa.text(copied), {"day": TUESDAY})
    try:
        code, found = asked("diff", "source=support,version=2.0.0,to=2025-11-03", "source=next,version=2.0.0")
        said = stepacc("diff", "source=support,version=2.0.0,to=2025-11-03", "source=next", "--limit", "0")
    finally:
        with shop.begin() as connection:
            connection.execute(sa.text("DELETE FROM stepacc.scores WHERE source = 'next'"))

    assert (code, found["paired_by"], found["differs"]) == (0, "task", ["source", "windows"])
    assert found["change"]["mean"] == pytest.approx(-(5 + 2 / 3) / 6)
    assert "The sides differ in source and windows, so a change cannot be put down to one of these." in said.out


def test_a_day_as_the_last_window_has_its_hours(shop: sa.Engine) -> None:
    with shop.begin() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO stepacc.scores (source, partition_type, partition_id, window_key, metric, metric_version,"
                " config_hash, status, score) SELECT 'hours', 'trace', key, key, 'own', '1.0.0', 'abcd', 'scored', 1"
                " FROM unnest(ARRAY['2025-11-03-23:00', '2025-11-04-13:00', '2025-11-05-00:00']) key"
            )
        )
    said = stepacc("gate", "--source", "hours", "--from", TUESDAY, "--to", TUESDAY, "--min-mean", "1", "--json")
    [found] = said.rows
    assert (said.code, found["scored"]) == (0, 1)


def test_people_see_the_sides_the_change_and_two_pictures_side_by_side() -> None:
    said = stepacc("diff", "version=1.0.0", "version=2.0.0", "--source", SOURCE, "--limit", "1")

    assert said.code == 0
    assert "Mean change over 13 traces: +0.051 (95 % interval" in said.out
    assert "trace m5, task refund: 0.000 before, 0.667 after." in said.out
    assert "The versions of the metric count the same steps differently." in " ".join(said.out.split())
    assert "1 trace measured against another expectation" in said.out
    assert any(line.count("expected") == 2 for line in said.out.splitlines())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("to=2025-11-03", "from=2025-11-04"), "several versions in this selection: 1.0.0 (7), 2.0.0 (7); they"),
        (("version=1.0.0", "version=1.0.0"), "Both sides are support, agent.step_accuracy 1.0.0"),
        (("version=2.0.0,to=2025-11-04", "version=2.0.0,from=2025-11-04"), "The sides share windows"),
        (("version", "version=2.0.0"), "'version' does not say what a side is"),
        (("version=1.0.0", "version=2.0.0", "--config", "ab"), "config is 'ab'; give at least 4 characters"),
        (("from=yesterday", "to=2025-11-04"), "from is 'yesterday'; write a window's key"),
        (("to=2025-13-45", "from=2025-11-04"), "to is '2025-13-45'; write a window's key"),
        (("to=2025-11-03-25:00", "from=2025-11-04"), "to is '2025-11-03-25:00'; write a window's key"),
        (("version=1.0.0", "version=2.0.0", "--pass-at", "nan"), "pass-at is nan; use a score from 0 to 1"),
    ],
)  # fmt: skip
def test_what_does_not_compare_is_refused_in_a_sentence(words: tuple[str, ...], said: str) -> None:
    refused = stepacc("diff", *words, "--source", SOURCE)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.complaint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("version=9.9.9", "version=2.0.0"),
            ("Source `support` has no scores by version 9.9.9; stored are 1.0.0 (15), 2.0.0 (15). No such version is "
            "installed either; there are 1.0.0, 2.0.0."),
        ),
        (
            ("version=1.0.0", "version=2.0.0", "--metric", "agent.trajectory_match"),
            ("Source `support` has no scores by metric trajectory_match.passed; stored are agent.step_accuracy (30). "
            "Once the source's defs.yaml has it, `stepacc backfill --source support --metric agent.trajectory_match` "
            "scores by it; what is stored stays."),
        ),
        (
            ("from=2025-11-03,to=2025-11-03", "from=2025-11-04", "--metric-version", "2.0.0", "--config", "0bad"),
            "Source `support` has no scores of 2.0.0 by config 0bad; stored are ",
        ),
        (
            ("source=nobody", "source=support"),
            ("Source `nobody` has no scores. Sources with traces are `support`. Score it: "
            "`stepacc backfill --source nobody`."),
        ),
    ],
)  # fmt: skip
def test_what_was_never_scored_is_refused_with_what_is_stored_and_how_to_score_it(
    words: tuple[str, ...], said: str
) -> None:
    refused = stepacc("diff", *words, "--source", SOURCE)
    assert (refused.code, refused.out) == (2, "")
    assert refused.complaint.startswith(said)


def test_a_version_that_is_installed_and_was_never_scored_comes_with_its_command(
    shop: sa.Engine, tmp_path: Path
) -> None:
    with shop.begin() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO stepacc.scores (source, partition_type, partition_id, window_key, metric, metric_version,"
                " config_hash, status, score) VALUES ('young', 'trace', 'x', '2025-11-03', 'agent.step_accuracy',"
                " '2.0.0', 'abcd', 'scored', 1)"
            )
        )
    settings = tmp_path / "defs" / "young" / "defs.yaml"
    settings.parent.mkdir(parents=True)
    settings.touch()
    refused = stepacc("diff", "version=1.0.0", "version=2.0.0", "--source", "young")
    assert refused.code == 2
    assert refused.complaint == (
        "Source `young` has no scores by version 1.0.0; stored are 2.0.0 (1). Put `metric_version: 1.0.0` under "
        f"`attributes` in {settings}, run `stepacc backfill --source young --metric agent.step_accuracy`, and take it "
        "out again; what is stored stays."
    )


def test_versions_that_nobody_asked_for_are_not_compared(shop: sa.Engine) -> None:
    with shop.begin() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO stepacc.scores (source, partition_type, partition_id, window_key, metric, metric_version,"
                " config_hash, status, score) SELECT 'moved', 'trace', day, day, 'own', version, 'abcd', 'scored', 1"
                " FROM (VALUES ('2025-11-03', '1.0.0'), ('2025-11-04', '1.1.0')) AS made (day, version)"
            )
        )
    sides = ("from=2025-11-03,to=2025-11-03", "from=2025-11-04")
    refused = stepacc("diff", *sides, "--source", "moved")
    assert refused.code == 2
    assert refused.complaint.startswith("The scores before are by version 1.0.0 and those after by 1.1.0, which were")
    named = stepacc("diff", f"{sides[0]},version=1.0.0", f"{sides[1]},version=1.1.0", "--source", "moved")
    assert named.code == 1
    assert "The sides differ in version and windows" in named.out


def test_a_report_that_cannot_be_written_is_not_the_answer_no(tmp_path: Path) -> None:
    file = tmp_path / "none" / "gate.xml"
    refused = stepacc("gate", "--metric-version", "2.0.0", "--min-mean", "0", "--source", SOURCE, "--junit", str(file))
    assert (refused.code, refused.out) == (2, "")
    assert str(file) in refused.complaint


def test_what_does_not_pair_is_told_by_the_exit_code() -> None:
    code, found = asked("diff", "version=2.0.0", "version=2.0.0,from=2030-01-01")
    assert (code, found["pairs"], found["change"]) == (1, 0, None)

    said = stepacc("diff", "from=2030-01-01", "to=2025-11-04", "--metric-version", "2.0.0", "--source", SOURCE)
    assert said.out.startswith("agent.step_accuracy, traces, paired by task\n")
    assert "`stepacc backfill --source support --from 2030-01-01` scores these." in said.err


def gated(*words: str) -> tuple[int, dict[str, Any]]:
    """Run the gate over scores of the newer version."""
    return asked("gate", "--metric-version", "2.0.0", *words)


def set_monday(name: str, *words: str) -> None:
    """Keep Monday's scores as a baseline."""
    chosen = ("--source", SOURCE, "--from", MONDAY, "--to", MONDAY, "--metric-version", "2.0.0")
    said = stepacc("gate", "baseline", "set", name, *chosen, "--author", "qa", *words)
    assert said.code == 0, said.err


def test_the_gate_passes_and_fails_by_floor_and_coverage_and_says_why() -> None:
    monday = ("--from", MONDAY, "--to", MONDAY)
    code, passed = gated(*monday, "--min-mean", "0.9", "--min-coverage", "1")
    assert (code, passed["passed"], passed["coverage"], passed["scored"]) == (0, True, 1.0, 7)

    code, failed = gated("--min-mean", "0.9", "--min-coverage", "0.95")
    assert (code, failed["passed"], failed["failed"]) == (1, False, 1)
    assert failed["reason"] == (
        "The gate failed: the mean 0.512 is below 0.9; the coverage 0.933 is below 0.95: 14 of 15 have a score "
        "(1 failed)."
    )
    words = ("gate", "--source", SOURCE, "--metric-version", "2.0.0", "--newest", "1", "--min-mean", "0.9")
    said = stepacc(*words)
    assert said.code == 1
    assert said.out.splitlines()[-1] == "The gate failed: the mean 0.071 is below 0.9."


def test_of_several_versions_that_which_the_source_has_now_is_judged_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "defs" / SOURCE
    folder.mkdir(parents=True)
    settings = {
        "source": SOURCE,
        "start_date": "2025-11-01",
        "metric": "agent.step_accuracy",
        "metric_version": "1.0.0",
    }
    document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": settings}
    (folder / "defs.yaml").write_text(json.dumps(document))

    said = stepacc("gate", "--min-mean", "0.1", "--json")
    [found] = said.rows
    assert (said.code, found["selection"]["metric_version"]) == (0, "1.0.0")
    assert "Of several, what the source is scored by now: support, agent.step_accuracy 1.0.0, config " in said.err
    assert stepacc("gate", "--min-mean", "0.1", "--metric-version", "3.0.0").code == 1


def test_what_is_known_but_not_evaluated_lowers_the_coverage(shop: sa.Engine) -> None:
    _, before = gated("--min-coverage", "0.5")
    with shop.begin() as connection:
        connection.execute(
            sa.text(
                "INSERT INTO stepacc.traces"
                " (source, trace_id, window_key, status, settled, span_count, spans_hash, gaps)"
                " VALUES (:source, 'unseen', '2025-11-05', 'OK', true, 0, '', '[]')"
            ),
            {"source": SOURCE},
        )
    try:
        _, after = gated("--min-coverage", "0.5")
    finally:
        with shop.begin() as connection:
            connection.execute(sa.text("DELETE FROM stepacc.traces WHERE trace_id = 'unseen'"))

    assert (before["without_evaluation"], after["without_evaluation"]) == (0, 1)
    assert (before["coverage"], after["coverage"]) == (14 / 15, 14 / 16)


@pytest.mark.parametrize("words", [("--min-mean", "0"), ("--min-coverage", "0"), ("--no-forbidden",)])
def test_an_empty_selection_never_passes(words: tuple[str, ...]) -> None:
    code, found = gated("--from", "2030-01-01", *words)
    assert (code, found["passed"], found["scored"]) == (1, False, 0)
    assert "nothing was evaluated in support" in found["reason"]


def test_a_metric_that_does_not_look_for_forbidden_steps_is_refused() -> None:
    code, found = gated("--no-forbidden")
    assert code == 1
    assert [each["status"] for each in found["criteria"]] == ["passed", "refused"]


def test_scores_that_fell_beyond_noise_fail_the_gate_once_the_revised_task_is_left_out() -> None:
    set_monday("monday", "--note", "before the change")
    tuesday = ("--from", TUESDAY, "--baseline", "monday")

    code, refused = gated(*tuesday)
    assert (code, refused["criteria"][-1]["status"]) == (1, "refused")
    assert "the expectation of order was revised since baseline monday was set" in refused["reason"]
    assert "(`--shared-references`)" in refused["reason"]

    code, worse = gated(*tuesday, "--shared-references")
    assert (code, worse["criteria"][-1]["status"]) == (1, "failed")
    assert worse["reason"].startswith(
        "The gate failed: the scores fell by 0.944 on average over 1 task (6 of 7 scores) since baseline monday"
    )
    assert worse["comparison"]["p"] == pytest.approx(1 / 924)
    assert (worse["comparison"]["paired_by"], worse["comparison"]["other_reference"]) == ("task", ["order"])

    code, same = gated("--from", MONDAY, "--to", MONDAY, "--baseline", "monday")
    assert (code, same["comparison"]["paired_by"], same["comparison"]["pairs"]) == (0, "occurrence", 7)


def test_a_baseline_of_another_version_is_refused() -> None:
    set_monday("by the newer version")
    code, found = asked("gate", "--metric-version", "1.0.0", "--baseline", "by the newer version")
    assert (code, found["criteria"][-1]["status"]) == (1, "refused")
    assert "is of another version 2.0.0 and now 1.0.0" in found["reason"]


def test_baselines_are_listed_shown_and_revised() -> None:
    set_monday("kept")
    set_monday("kept", "--note", "again")

    said = stepacc("gate", "baseline", "list", "--source", SOURCE, "--json")
    [kept] = [row for row in said.rows if row["name"] == "kept"]
    assert (kept["revision"], kept["scored"], kept["note"], kept["author"]) == (2, 7, "again", "qa")
    assert (kept["first_window"], kept["last_window"]) == (MONDAY, MONDAY)
    shown = stepacc("gate", "baseline", "show", "kept", "--source", SOURCE, "--json")
    [document] = shown.rows
    assert {row["task_id"] for row in document["scores"]} == {"refund", "order"}
    assert all(row["reference_hash"] for row in document["scores"])
    people = stepacc("gate", "baseline", "show", "kept", "--source", SOURCE)
    assert "Revision 2, set " in people.out
    assert " by qa: again" in people.out
    assert "kept" in stepacc("gate", "baseline", "list").out


def test_nothing_scored_is_no_baseline() -> None:
    refused = stepacc("gate", "baseline", "set", "empty", "--source", SOURCE, "--from", "2030-01-01")
    assert refused.code == 2
    assert refused.complaint.startswith("Nothing is scored in support, traces, from 2030-01-01, so there is nothing")
    unknown = stepacc("gate", "--source", SOURCE, "--metric-version", "2.0.0", "--baseline", "empty")
    assert unknown.code == 2
    assert "Source `support` has no baseline `empty`" in unknown.complaint


def test_junit_xml_says_the_same_and_can_be_parsed(tmp_path: Path) -> None:
    file = tmp_path / "gate.xml"
    code, found = gated("--min-mean", "0.9", "--min-coverage", "0.5", "--no-forbidden", "--junit", str(file))

    root = ET.parse(file).getroot()  # noqa: S314 (just written)
    assert (code, root.tag, root.get("tests"), root.get("failures"), root.get("errors")) == (
        1,
        "testsuites",
        "4",
        "1",
        "1",
    )
    [suite] = root
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert (properties["metric_version"], {"first", "last"} & properties.keys()) == ("2.0.0", set())
    assert (found["selection"]["first"], found["selection"]["last"]) == (None, None)
    cases = suite.findall("testcase")
    assert [case.find("failure") is not None for case in cases] == [False, True, False, False]
    assert [case.find("error") is not None for case in cases] == [False, False, False, True]
    failure = cases[1].find("failure")
    assert failure is not None
    assert failure.get("message") == found["criteria"][1]["reason"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "The gate asks for nothing; give one or more of `--min-mean`, `--min-coverage`"),
        (("--min-mean", "0.9"), "scores of several versions in this selection"),
        (("--min-mean", "0.9", "--alpha", "0.7"), "`--alpha` is 0.7; use more than 0"),
        (("--min-mean", "0.9", "--newest", "2", "--from", "2025-11-01"), "give one or the other"),
    ],
)
def test_a_gate_that_cannot_be_decided_is_told_apart_from_one_that_fails(words: tuple[str, ...], said: str) -> None:
    refused = stepacc("gate", *words, "--source", SOURCE)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.complaint


def test_a_database_that_does_not_answer_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPACC_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    assert stepacc("gate", "--source", SOURCE, "--min-mean", "0.5").code == 2
    assert stepacc("diff", "version=1.0.0", "version=2.0.0", "--source", SOURCE).code == 2


def test_an_erased_trace_leaves_its_score_in_a_baseline_and_no_hash_of_what_was_said_of_it(
    migrated_engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_engine.url.render_as_string(hide_password=False))
    with migrated_engine.begin() as connection:
        land_spans(connection, SOURCE, [s for name in ("a", "b") for s in agent_trace(name, MONDAY, "look", task="t")])
    annotate(migrated_engine, "a", ["look"], "trace")
    annotate(migrated_engine, "t", ["look"])
    evaluate(migrated_engine, MONDAY, version="2.0.0")
    set_monday("kept")

    def kept() -> dict[str, tuple[float, str]]:
        with migrated_engine.connect() as connection:
            rows = connection.execute(
                sa.text("SELECT partition_id, score, reference_hash FROM stepacc.baseline_scores")
            )
            return {row.partition_id: (row.score, row.reference_hash) for row in rows}

    before = kept()
    assert stepacc("erase", "--trace", "a", "--yes").code == 0
    after = kept()
    assert (after["a"][0], after["b"]) == (1.0, before["b"])
    assert before["a"][1] == before["b"][1]
    assert after["a"][1].startswith("erased:")


def test_forbidden_steps_fail_the_gate_by_whatever_member_of_the_family_it_asks_for(
    migrated_engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_engine.url.render_as_string(hide_password=False))
    good, bad = agent_trace("good", MONDAY, "look", task="t"), agent_trace("bad", TUESDAY, "look", "delete", task="t")
    strange = agent_trace("strange", MONDAY, "delete", task="nobody said what is forbidden here")
    references = {"references": [{"name": "one", "steps": [{"tool": "look"}]}], "forbidden": ["delete"]}
    with migrated_engine.begin() as connection:
        land_spans(connection, SOURCE, [*good, *bad, *strange])
        add_annotations(connection, [AnnotationEntry(SOURCE, "task", "t", references, key="reference_trajectories")])
    evaluate(migrated_engine, MONDAY, TUESDAY, metric="agent.trajectory_match", version="1.0.0")

    for name in ("agent.trajectory_match", "trajectory_match.passed", "trajectory_match.f1"):
        code, found = asked("gate", "--metric", name, "--no-forbidden")
        assert (code, found["forbidden"]) == (1, [{"partition_id": "bad", "steps": ["delete"]}])
        unseen = ", and nothing is known of 1 more (1 failed)"
        assert found["reason"] == f"The gate failed: forbidden steps ran in trace bad: delete{unseen}."
        code, monday = asked("gate", "--metric", name, "--no-forbidden", "--to", MONDAY)
        assert (code, monday["forbidden_looked_at"], monday["forbidden_not_looked_at"]) == (0, 1, {"failed": 1})
        assert f"no forbidden step ran in 1 scored trace{unseen}." in monday["reason"]
    refused = stepacc("gate", "--source", SOURCE, "--no-forbidden")
    assert refused.code == 2
    assert "scores of several metrics in this selection: trajectory_match.any_order (3)" in refused.complaint


def test_the_comparison_after_a_backfill_pairs_only_what_has_the_same_expectation(shop: sa.Engine) -> None:
    with shop.connect() as connection:
        config = connection.scalar(
            sa.text("SELECT max(config_hash) FROM stepacc.scores WHERE metric_version = '2.0.0'")
        )
        versions = compare_versions(
            connection,
            SOURCE,
            "agent.step_accuracy",
            metric_version="2.0.0",
            config_hash=str(config),
            first=MONDAY,
            last=TUESDAY,
        )
    old, new = versions
    assert (old.metric_version, old.scored, old.failed, old.pairs, old.other_reference) == ("1.0.0", 14, 1, 13, 1)
    assert (old.higher, old.lower) == (1, 0)
    assert old.change == pytest.approx(2 / 3 / 13)
    assert (new.metric_version, new.pairs, new.change, new.other_reference) == ("2.0.0", 14, 0.0, 0)
