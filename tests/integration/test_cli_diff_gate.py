"""`stepacc diff` and `stepacc gate` over scores that real runs made: versions, ranges, revisions, baselines."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.ingest import ingest_window
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import MetricChoice
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.raw_spans import land_spans
from stepacc_dagster.stores.factory import build_store
from tests.cli_access import stepacc
from tests.integration.conftest import Server, opened
from tests.integration.evaluation_access import support_source
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, agent_trace, day

GOOD = ("search", "pay")
BAD = ("hello", "search")


def evaluate(engine: sa.Engine, *keys: str, version: str) -> None:
    """Ingest and score windows as a run does, without the time that starting runs takes."""
    source = support_source(metric=MetricChoice(version=version))
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


def annotate(engine: sa.Engine, task: str, steps: list[str]) -> None:
    """Say what a task should do."""
    with engine.begin() as connection:
        add_annotations(connection, [AnnotationEntry(SOURCE, "task", task, steps)])


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
    ],
)  # fmt: skip
def test_what_does_not_compare_is_refused_in_a_sentence(words: tuple[str, ...], said: str) -> None:
    refused = stepacc("diff", *words, "--source", SOURCE)
    assert (refused.code, refused.out) == (2, "")
    assert said in refused.complaint


def test_what_does_not_pair_is_told_by_the_exit_code() -> None:
    code, found = asked("diff", "version=2.0.0", "version=2.0.0,from=2030-01-01")
    assert (code, found["pairs"], found["change"]) == (1, 0, None)
