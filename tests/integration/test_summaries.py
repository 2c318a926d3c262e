"""Task summaries in the database: what is counted together and what never, what is told with it, and the command."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import yaml
from click.testing import CliRunner

from stepacc_core.annotation_files import parse_annotations
from stepacc_core.summaries import SummarySettings
from stepacc_dagster.cli import main
from stepacc_dagster.definitions import load_sources
from stepacc_dagster.evaluators import evaluator_of, evaluators_of
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.erasure import Request, StagedErasure, erase_staged
from stepacc_dagster.storage.score_rows import ScoreRow
from stepacc_dagster.storage.scores import write_scores
from stepacc_dagster.storage.summaries import Summarised, SummarisedMetric, TaskSummary, summarise, task_summaries_of
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, day

PAGE = (Path(__file__).parents[2] / "docs" / "summaries.md").read_text()
STEPS = SummarisedMetric("agent.step_accuracy", "agent.step_accuracy", 1.0, lower_is_better=False)
KS = (1, 2)
YAML = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
"""The YAML of the page: settings, annotations and a source."""


def run(ident: str, score: float | None, task: str | None = "refund", **fields: Any) -> ScoreRow:
    status = {"status": "scored"} if score is not None else {"status": "failed", "code": "too_large"}
    return ScoreRow("trace", ident, task_id=task, score=score, steps_hash="x", **{**status, **fields})


def store(
    engine: sa.Engine, rows: Iterable[ScoreRow], *, key: str = MONDAY, version: str = "2.0.0", metric: str = STEPS.name
) -> None:
    with engine.begin() as conn:
        write_scores(
            conn, SOURCE, day(key), metric=metric, metric_version=version, config_hash="c", run_id=None, rows=rows
        )


def summarised(engine: sa.Engine, *metrics: SummarisedMetric) -> list[TaskSummary]:
    with engine.begin() as conn:
        summarise(conn, SOURCE, metrics or (STEPS,), KS)
        return task_summaries_of(conn, SOURCE)


def annotated(engine: sa.Engine, value: Any) -> int:
    with engine.begin() as conn:
        [added] = add_annotations(conn, [AnnotationEntry(SOURCE, "task", "refund", value)])
    return added.id


def test_runs_of_all_windows_are_counted_and_those_without_a_score_are_no_zeros(migrated_engine: sa.Engine) -> None:
    store(migrated_engine, [run("a", 1.0), run("b", 0.5), run("c", None), run("other", 1.0, task=None)])
    not_applicable = run("d", None, status="not_applicable", code=None, reason="no_required_kinds")
    store(migrated_engine, [run("e", 1.0), not_applicable], key=TUESDAY)
    [row] = summarised(migrated_engine)
    assert (row.task_id, row.n, row.n_scored, row.n_failed, row.n_not_applicable) == ("refund", 5, 3, 1, 1)
    assert row.passes == 2
    assert row.pass_rate == pytest.approx(2 / 3)
    assert row.mean == pytest.approx(2.5 / 3)
    assert row.pass_hat_k == {"1": pytest.approx(2 / 3), "2": pytest.approx(1 / 3)}


def test_versions_and_revisions_are_never_counted_together(migrated_engine: sa.Engine) -> None:
    first, second = annotated(migrated_engine, ["a"]), annotated(migrated_engine, ["b"])
    for ident, annotation in (("a", first), ("b", first), ("c", second), ("d", None)):
        store(migrated_engine, [run(ident, 1.0, annotation_id=annotation, reference_hash=str(annotation))])
    store(migrated_engine, [run("a", 0.0, annotation_id=first, reference_hash=str(first))], version="1.0.0")
    found = {(row.metric_version, row.annotation_revision): (row.n, row.passes) for row in summarised(migrated_engine)}
    assert found == {("2.0.0", 1): (2, 2), ("2.0.0", 2): (1, 1), ("2.0.0", None): (1, 1), ("1.0.0", 1): (1, 0)}


def test_a_run_that_is_scored_anew_leaves_the_summary_of_its_old_revision(migrated_engine: sa.Engine) -> None:
    first, second = annotated(migrated_engine, ["a"]), annotated(migrated_engine, ["b"])
    store(migrated_engine, [run("a", 0.0, annotation_id=first, reference_hash="1")])
    [before] = summarised(migrated_engine)
    store(migrated_engine, [run("a", 1.0, annotation_id=second, reference_hash="2")])
    [after] = summarised(migrated_engine)
    assert (before.annotation_id, before.passes, after.annotation_id, after.passes) == (first, 0, second, 1)


def test_making_them_again_changes_nothing(migrated_engine: sa.Engine) -> None:
    store(migrated_engine, [run("a", 1.0), run("b", 1.0, task="other")])
    with migrated_engine.begin() as conn:
        assert summarise(conn, SOURCE, [STEPS], KS) == Summarised(summaries=2, changed=2, removed=0, tasks=2)
    before = summarised(migrated_engine)
    with migrated_engine.begin() as conn:
        assert summarise(conn, SOURCE, [STEPS], KS) == Summarised(summaries=2, changed=0, removed=0, tasks=2)
    assert summarised(migrated_engine) == before
    with migrated_engine.begin() as conn:
        assert summarise(conn, SOURCE, [], KS).removed == 2


@pytest.mark.parametrize(
    ("threshold", "lower", "passes"), [(1.0, False, 1), (0.5, False, 2), (0.5, True, 2), (0, True, 1)]
)
def test_a_pass_is_a_score_of_the_threshold_and_never_a_number_that_is_none(
    migrated_engine: sa.Engine, threshold: float, passes: int, *, lower: bool
) -> None:
    store(migrated_engine, [run("a", 0.0), run("b", 0.5), run("c", 1.0), run("nan", float("nan"))])
    metric = SummarisedMetric(STEPS.name, STEPS.name, threshold, lower_is_better=lower)
    [row] = summarised(migrated_engine, metric)
    assert (row.n_scored, row.passes, row.pass_threshold) == (4, passes, threshold)


def test_what_was_assumed_is_told_with_every_member_and_the_verdicts_with_the_headline(
    migrated_engine: sa.Engine,
) -> None:
    def told(verdict: str, *kinds: str, reference: str) -> dict[str, Any]:
        return {
            "verdict": verdict,
            "gaps": [{"kind": kind, "detail": "", "span_ids": []} for kind in kinds],
            "assumptions": [
                {"kind": "unconfirmed_reference", "reference": reference},
                {"kind": "another", "reference": "not this"},
            ],
        }

    runs = [
        ("a", 1.0, told("pass", "orphan", "orphan", reference="guess")),
        ("b", 0.0, told("review", "orphan", "no_root", reference="try")),
    ]
    rows = [
        row
        for ident, score, metadata in runs
        for row in (run(ident, score, member="m.passed", metadata=metadata), run(ident, 0.5, member="m.f1"))
    ]
    store(migrated_engine, rows, metric="acme.m")
    family = [SummarisedMetric(name, "m.passed", 1.0, lower_is_better=False) for name in ("m.passed", "m.f1")]
    found = {row.metric: row for row in summarised(migrated_engine, *family)}
    assert found["m.passed"].verdicts == {"pass": 1, "review": 1}
    assert found["m.f1"].verdicts == {}
    for row in found.values():
        assert row.unconfirmed_references == ["guess", "try"]
        assert row.assumptions == {"orphan": 2, "no_root": 1}


def test_metadata_of_another_form_says_nothing(migrated_engine: sa.Engine) -> None:
    strange: dict[str, Any] = {"verdict": {"a": 1}, "gaps": "many", "assumptions": {"kind": "unconfirmed_reference"}}
    store(migrated_engine, [run("a", 1.0, metadata=strange), run("b", 1.0, metadata={"gaps": [1, {"kind": 2}]})])
    [row] = summarised(migrated_engine)
    assert (row.n, row.unconfirmed_references, row.assumptions) == (2, [], {})


def test_erasing_a_run_removes_the_summaries_of_its_task(migrated_engine: sa.Engine) -> None:
    store(migrated_engine, [run("a", 1.0), run("b", 1.0, task="other")])
    summarised(migrated_engine)
    with migrated_engine.begin() as conn:
        staged = StagedErasure(conn)
        staged.add_traces(SOURCE, ["a"])
        erase_staged(conn, staged, Request("trace", ("a",), "digest", SOURCE, "dpo@example.org", "asked"))
        assert [row.task_id for row in task_summaries_of(conn, SOURCE)] == ["other"]
    assert [row.task_id for row in summarised(migrated_engine)] == ["other", "refund"]


def test_the_command_shows_what_the_scores_amount_to_now(
    migrated_engine: sa.Engine, migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = yaml.safe_load(YAML[0])
    settings["summaries"]["pass_thresholds"].pop("trajectory_match.f1")  # of a metric that this source has not
    attributes = {"source": SOURCE, "start_date": "2025-11-01", **settings}
    (tmp_path / "defs.yaml").write_text(
        yaml.safe_dump({"type": "stepacc_dagster.StepAccuracyComponent", "attributes": attributes})
    )
    monkeypatch.setenv("STEPACC_DEFS", str(tmp_path))
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    store(migrated_engine, [run("a", 1.0), run("b", 0.9), run("c", 0.1), run("d", 1.0, task="other")])
    result = CliRunner().invoke(main, ["summaries", "--source", SOURCE, "--task", "refund", "--json"])
    assert result.exit_code == 0, result.output
    [row] = map(json.loads, result.stdout.splitlines())
    assert (row["source"], row["task_id"], row["n"], row["passes"]) == (SOURCE, "refund", 3, 2)
    assert list(row["pass_at_k"]) == ["1", "2", "4", "8"]
    assert row["in_use"] is False
    table = CliRunner().invoke(main, ["summaries"]).output
    assert "agent.step_accuracy 2.0.0, config c, not what the source has now" in table
    assert "2 of 3" in table
    nothing = CliRunner().invoke(main, ["summaries", "--task", "none"])
    assert "There is no run of task 'none' to summarise" in nothing.output
    unknown = CliRunner().invoke(main, ["summaries", "--metric", "agent.none"])
    assert (unknown.exit_code, "is not scored by `agent.none`" in unknown.output) == (1, True)
    present = evaluator_of(load_sources(tmp_path)[0]).config_hash
    with migrated_engine.begin() as conn:
        conn.execute(sa.text("UPDATE stepacc.scores SET config_hash = :present"), {"present": present})
    rows = map(json.loads, CliRunner().invoke(main, ["summaries", "--json"]).stdout.splitlines())
    assert [row["in_use"] for row in rows] == [True, True]
    assert f"config {present[:8]}, which the source has now" in CliRunner().invoke(main, ["summaries"]).output


def test_the_files_of_the_page_are_taken(tmp_path: Path) -> None:
    [annotation] = parse_annotations(YAML[1], "yaml", name="summaries.md")
    assert (annotation.key, annotation.target.id) == ("reference_trajectories", "refund_damaged_item")
    (tmp_path / "defs.yaml").write_text(YAML[2])
    [source] = load_sources(tmp_path)
    assert [evaluator.name for evaluator in evaluators_of(source)] == ["agent.step_accuracy", "agent.trajectory_match"]


def test_the_query_of_the_page_runs(migrated_engine: sa.Engine) -> None:
    [query] = re.findall(r"```sql\n(.*?)```", PAGE, flags=re.DOTALL)
    store(migrated_engine, [run("a", 1.0), run("b", 0.0)])
    summarised(migrated_engine)
    with migrated_engine.connect() as conn:
        [row] = conn.execute(sa.text(query.replace("'demo'", f"'{SOURCE}'")))
    assert (row.task_id, row.n, row.passes, row.pass_hat_2) == ("refund", 2, 1, "0.0")
    assert "1, 2, 3 and 5" in PAGE
    assert SummarySettings().ks == (1, 2, 3, 5)
