"""`stepacc lineage`: from an annotation to the scores that used it, from a trace or session to what made its scores."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepacc_core.picture import picture
from stepacc_dagster.local.outcome import RunOutcome
from stepacc_dagster.storage.raw_spans import land_spans
from stepacc_dagster.stores.settings import TableColumns, TableSettings
from tests.cli_access import Said, stepacc
from tests.integration.conftest import Server
from tests.integration.evaluation_access import Workshop, open_workshop
from tests.integration.evaluation_samples import MONDAY, SOURCE, START, TUESDAY, agent_trace
from tests.integration.store_access import DAY, SETTINGS, TRUE_CALLS, StoreName, load
from tests.integration.test_store_changes import STORES

FIRST_FILE = """
source: support
annotations:
- {target: {type: task, id: refund}, expected_steps: [lookup, pay], author: ann, note: agreed with finance}
- {target: {type: trace, id: c-own}, expected_steps: [lookup], author: ann}
- {target: {type: session, id: chat}, expected_steps: [lookup, pay, lookup], author: ann}
"""
SECOND_FILE = """
source: support
annotations:
- {target: {type: task, id: refund}, expected_steps: [lookup, mail, pay], author: "bob [red]\\e[31m"}
"""
TYPES = {"trace": "fail", "session": "skip"}
HERE = ("--source", SOURCE)


class Scene:
    """Three traces of one task, two of them of one session, evaluated before and after people changed their minds.

    `old` is the run by version 1.0.0, `before` and `after` are those by 2.0.0: before the task's annotation was changed
    and those of the trace `c-own` and of the session were withdrawn, and after. `d-bare` nobody annotated, and it is
    in another source too, where it only landed.
    """

    def __init__(self, workshop: Workshop, home: Path) -> None:
        self.workshop, self.home = workshop, home
        configure(home, partition_types=list(TYPES), unannotated=TYPES)
        bare = agent_trace("d-bare", TUESDAY, "lookup")
        workshop.land(
            agent_trace("a-one", MONDAY, "lookup", "pay", task="refund", session="chat"),
            agent_trace("b-two", TUESDAY, "lookup", task="refund", session="chat"),
            agent_trace("c-own", TUESDAY, "lookup", task="refund"),
            bare,
        )
        self._say(home / "first.yaml", FIRST_FILE)
        self.old = self._run(version="1.0.0")
        self.before = self._run()
        self._say(home / "second.yaml", SECOND_FILE)
        for kind, ident in (("trace", "c-own"), ("session", "chat")):
            assert stepacc("annotations", "withdraw", ident, "--type", kind, "--author", "cy", *HERE).code == 0
        self.after = self._run()
        workshop.land(agent_trace("b-two-more", TUESDAY, "lookup"))
        with workshop.engine.begin() as connection:
            land_spans(connection, "other", bare)

    @staticmethod
    def _say(path: Path, content: str) -> None:
        path.write_text(content)
        assert stepacc("annotations", "import", path).code == 0

    def _run(self, **metric: Any) -> RunOutcome:
        outcome = self.workshop.run(MONDAY, TUESDAY, partition_types=TYPES, **metric)
        assert outcome.error is None
        return outcome

    def annotation(self, target_id: str, revision: int) -> int:
        """The id of a revision."""
        query = "SELECT id FROM stepacc.annotations WHERE target_id = :target_id AND revision = :revision"
        [row] = self.workshop.rows(query, target_id=target_id, revision=revision)
        return int(row.id)


@pytest.fixture(scope="module")
def _scene(
    server: Server, _migrated_template: str, _dagster_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    with open_workshop(server, _migrated_template, _dagster_template) as workshop:
        yield Scene(workshop, tmp_path_factory.mktemp("home"))


@pytest.fixture
def scene(_scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The scene, in whose database and home the commands run."""
    url = _scene.workshop.engine.url.render_as_string(hide_password=False)
    monkeypatch.setenv("STEPACC_DATABASE_URL", url)
    monkeypatch.setenv("STEPACC_HOME", str(_scene.home))
    return _scene


@pytest.fixture
def workshop(dagster_instance: dg.DagsterInstance, migrated_engine: sa.Engine) -> Workshop:
    """A workshop over databases of the test's own."""
    return Workshop(dagster_instance, migrated_engine)


def configure(home: Path, **attributes: Any) -> None:
    """Configure the source `support`."""
    folder = home / "defs" / SOURCE
    folder.mkdir(parents=True)
    values = {"source": SOURCE, "start_date": START, **attributes}
    (folder / "defs.yaml").write_text(
        json.dumps({"type": "stepacc_dagster.StepAccuracyComponent", "attributes": values})
    )


def documents(*words: str | int) -> list[Any]:
    """What a command of `stepacc lineage` prints as JSON."""
    said = stepacc("lineage", *map(str, words), "--json")
    assert (said.code, said.err) == (0, "")
    return said.rows


def shown(*words: str | int) -> str:
    """What it prints for people, with every run of white space as one space."""
    said = stepacc("lineage", *map(str, words))
    assert (said.code, said.err) == (0, "")
    return " ".join(said.out.split())


def used(document: Any) -> dict[tuple[str, str], tuple[Any, str, str]]:
    """Score, state and run of each score that used an annotation, by partition and metric version."""
    rows = {
        (score["partition_id"], score["metric_version"]): (score["score"], score["state"], score["dagster_run_id"])
        for score in document["scores"]
    }
    assert len(rows) == len(document["scores"])
    return rows


# from an annotation


def test_a_revision_tells_who_said_what_and_every_score_that_used_it(scene: Scene) -> None:
    first = scene.annotation("refund", 1)

    [document] = documents("annotation", first)

    said = {name: document[name] for name in ("source", "target", "partition_type", "author", "note", "origin")}
    assert said == {
        "source": SOURCE,
        "target": {"type": "task", "id": "refund"},
        "partition_type": "trace",
        "author": "ann",
        "note": "agreed with finance",
        "origin": "first.yaml",
    }
    assert (document["revision"], document["expected_steps"]) == (1, ["lookup", "pay"])
    assert used(document) == {
        ("a-one", "1.0.0"): (1.0, "current", scene.old.run_id),
        ("b-two", "1.0.0"): (0.5, "current", scene.old.run_id),
        ("a-one", "2.0.0"): (1.0, "superseded", scene.before.run_id),
        ("b-two", "2.0.0"): (0.5, "superseded", scene.before.run_id),
    }


def test_the_revisions_of_a_target_are_told_apart_and_one_of_them_is_in_force(scene: Scene) -> None:
    first, second = documents("annotation", "--target", "task:refund")

    ids = [scene.annotation("refund", 1), scene.annotation("refund", 2)]
    assert [each["id"] for each in (first, second)] == ids
    assert [(each["in_force"], each["withdrawn"]) for each in (first, second)] == [(False, False), (True, False)]
    assert [entry["id"] for entry in first["revisions"]] == ids
    assert first == documents("annotation", ids[0])[0]
    run = scene.after.run_id
    assert used(second) == {
        ("a-one", "2.0.0"): (pytest.approx(2 / 3), "current", run),
        ("b-two", "2.0.0"): (pytest.approx(1 / 3), "current", run),
        ("c-own", "2.0.0"): (pytest.approx(1 / 3), "current", run),
    }


def test_a_withdrawn_annotation_keeps_its_scores_and_the_withdrawal_has_none(scene: Scene) -> None:
    said, withdrawal = documents("annotation", "--target", "trace:c-own")

    assert [(each["in_force"], each["withdrawn"]) for each in (said, withdrawal)] == [(False, False), (False, True)]
    assert used(said) == {
        ("c-own", "1.0.0"): (1.0, "current", scene.old.run_id),
        ("c-own", "2.0.0"): (1.0, "superseded", scene.before.run_id),
    }
    assert (withdrawal["scores"], withdrawal["expected_steps"], withdrawal["author"]) == ([], None, "cy")


def test_people_are_told_what_came_after_a_revision_and_to_score_again(scene: Scene) -> None:
    first, second = scene.annotation("refund", 1), scene.annotation("refund", 2)

    text = shown("annotation", first)

    assert f"Annotation {first}: revision 1 of 2 about task refund, for traces of source support" in text
    assert f"no, changed by revision 2 (annotation {second} of bob [red]\\x1b[31m," in text
    assert "4 scores used it: 2 current, 2 superseded. The current ones are measured against" in text
    assert f"trace b-two 0.500 superseded {scene.before.run_id[:8]}" in text
    assert "score their windows again" not in shown("annotation", second)


@pytest.mark.usefixtures("scene")
def test_people_are_told_of_a_withdrawal() -> None:
    text = shown("annotation", "--target", "session:chat")

    assert "withdrawn by revision 2" in text
    assert "session chat 1.000 retired" in text
    assert "No score used it." in text


# from a trace or session


def test_a_trace_tells_where_it_came_from_and_what_made_each_of_its_scores(scene: Scene) -> None:
    [document] = documents("trace", "a-one")

    trace = {name: document["trace"][name] for name in ("window_key", "session_id", "task_id", "span_count")}
    assert trace == {"window_key": MONDAY, "session_id": "chat", "task_id": "refund", "span_count": 3}
    assert [gap["kind"] for gap in document["trace"]["gaps"]] == ["arguments_not_recorded"]
    assert document["store"]["trace_column"] == "stepacc.otel_spans.trace_id"
    assert document["landed"]["spans"] == 3
    made = [
        (each["metric_version"], each["score"], each["state"], each["annotation"]["id"], each["dagster_run_id"])
        for each in document["evaluations"]
    ]
    first, second = scene.annotation("refund", 1), scene.annotation("refund", 2)
    assert made == [
        ("1.0.0", 1.0, "current", first, scene.old.run_id),
        ("2.0.0", 1.0, "superseded", first, scene.before.run_id),
        ("2.0.0", pytest.approx(2 / 3), "current", second, scene.after.run_id),
    ]
    assert all(scene.workshop.instance.get_run_by_id(run_id) for *_, run_id in made)
    said = {name: document["evaluations"][0]["annotation"][name] for name in ("expected_steps", "author", "origin")}
    assert said == {"expected_steps": ["lookup", "pay"], "author": "ann", "origin": "first.yaml"}
    made_by = [each["config"] for each in document["evaluations"]]
    assert made_by == [{}, {"scoring_method": "edit_distance"}, {"scoring_method": "edit_distance"}]


def test_a_score_leads_to_the_config_it_was_made_by_and_says_so_where_none_was_kept(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = scene.workshop.rows("SELECT * FROM stepacc.metric_configs ORDER BY metric_version")
    assert [(row.metric_version, row.config) for row in kept] == [
        ("1.0.0", {}), ("2.0.0", {"scoring_method": "edit_distance"}),
    ]  # fmt: skip
    told = scene.workshop.rows("SELECT DISTINCT metric_version, config_hash, config FROM stepacc.score_lineage")
    assert sorted(map(tuple, told)) == [(row.metric_version, row.config_hash, row.config) for row in kept]
    assert 'config {"scoring_method": "edit_distance"} score' in shown("trace", "a-one")
    used_by = documents("annotation", scene.annotation("refund", 2))[0]["scores"]
    assert [score["config"] for score in used_by] == [{"scoring_method": "edit_distance"}] * 3
    assert 'config {"scoring_method": "edit_distance"} window' in shown("annotation", "--target", "task:refund")
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))  # where no source is configured
    scene.workshop.execute("DELETE FROM stepacc.metric_configs WHERE metric_version = '2.0.0'")
    try:
        [document] = documents("trace", "a-one")
        text = shown("trace", "a-one")
    finally:
        columns = "metric, metric_version, config_hash, row_names, config"
        values = {name: getattr(kept[1], name) for name in columns.split(", ")}
        scene.workshop.execute(
            f"INSERT INTO stepacc.metric_configs ({columns}) "  # noqa: S608 (as listed)
            "VALUES (:metric, :metric_version, :config_hash, :row_names, CAST(:config AS jsonb))",
            **values | {"config": json.dumps(values["config"])},
        )
    assert [each["config"] for each in document["evaluations"]] == [{}, None, None]
    assert "config known by its hash alone: it was scored before configs were kept" in text


def test_a_trace_leads_to_the_ui_of_its_store_where_the_source_says_how(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert documents("trace", "a-one")[0]["url"] is None
    assert "link" not in shown("trace", "a-one")
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))
    configure(tmp_path, trace_url="https://traces.example.org/t?id={trace_id}&tab=(all)")

    [document] = documents("trace", "a-one")

    assert document["url"] == "https://traces.example.org/t?id=a-one&tab=(all)"
    assert f"link {document['url']}" in shown("trace", "a-one")
    assert document["evaluations"][-1]["dagster_run_id"] == scene.after.run_id
    [elsewhere] = documents("trace", "d-bare", "--source", "other")
    assert elsewhere["url"] is None


@pytest.mark.usefixtures("scene")
def test_a_trace_nobody_annotated_has_no_annotation_and_says_why_it_failed() -> None:
    [document] = documents("trace", "d-bare", *HERE)

    *_, newest = document["evaluations"]
    assert (newest["annotation"], newest["code"], newest["expected_from"]) == (None, "missing_expected_steps", None)
    assert newest["message"] in shown("trace", "d-bare", *HERE)


def test_people_see_the_versions_apart_and_which_one_the_source_has(scene: Scene) -> None:
    text = shown("trace", "a-one")

    old, new = text.index("agent.step_accuracy 1.0.0, config"), text.index("agent.step_accuracy 2.0.0, config")
    assert text.index("not what the source has now") in range(old, new)
    assert text.index("which the source has now") > new
    assert '["lookup", "pay"] by ann, from first.yaml' in text
    assert scene.after.run_id in text
    assert "no longer in force" in text


def test_a_session_tells_its_traces_in_order_and_that_its_score_was_retired(scene: Scene) -> None:
    [document] = documents("session", "chat")

    assert [row["trace_id"] for row in document["traces"]] == ["a-one", "b-two"]
    assert document["session"]["window_key"] == MONDAY
    made = [
        (each["metric_version"], each["score"], each["state"], each["retired_at"] is not None, each["dagster_run_id"])
        for each in document["evaluations"]
    ]
    assert made == [
        ("1.0.0", 1.0, "current", False, scene.old.run_id),
        ("2.0.0", 1.0, "retired", True, scene.before.run_id),
    ]
    assert {each["annotation"]["in_force"] for each in document["evaluations"]} == {False}
    assert "1.000, retired since 20" in shown("session", "chat")


@pytest.mark.usefixtures("scene")
def test_an_id_in_two_sources_is_told_of_both_unless_one_is_named() -> None:
    both = documents("trace", "d-bare")
    [other] = documents("trace", "d-bare", "--source", "other")

    assert [each["source"] for each in both] == ["other", SOURCE]
    assert other == both[0]
    assert (other["trace"], other["store"], other["evaluations"]) == (None, None, [])
    assert other["landed"]["spans"] == 2
    text = shown("trace", "d-bare", "--source", "other")
    assert "not ingested" in text
    assert "It was never scored." in text


def test_the_beginning_of_one_id_is_enough_and_a_whole_id_is_never_the_beginning_of_another(scene: Scene) -> None:
    assert scene.after.success

    assert [each["trace_id"] for each in documents("trace", "a-")] == ["a-one"]
    assert [each["trace_id"] for each in documents("trace", "b-two")] == ["b-two"]
    assert [each["trace_id"] for each in documents("trace", "b-two-")] == ["b-two-more"]
    assert [each["session_id"] for each in documents("session", "ch")] == ["chat"]
    refused = stepacc("lineage", "trace", "b-t")
    assert (refused.code, refused.out) == (1, "")
    assert "`b-two`, `b-two-more`" in refused.complaint


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("trace", "nobody"), "trace `nobody`"),
        (("trace", "", *HERE), "trace ``"),
        (("trace", "a-one", "--source", "other"), "source `other`"),
        (("session", "a-one"), "session `a-one`"),
        (("annotation", "999"), "annotation 999"),
        (("annotation", "1", "--source", "other"), "source `other`"),
        (("annotation", "--target", "trace:refund"), "trace `refund`"),
        (("annotation", "--target", "task:refund", "--source", "other"), "source `other`"),
    ],
)
@pytest.mark.usefixtures("scene")
def test_an_unknown_id_is_one_sentence(words: tuple[str, ...], named: str) -> None:
    for option in ([], ["--json"]):
        refused = stepacc("lineage", *words, *option)
        assert (refused.code, refused.out, refused.err.count("\n")) == (1, "", 1)
        assert named in refused.complaint


@pytest.mark.parametrize(
    "words", [(), ("1", "--target", "task:refund"), ("--target", "refund"), ("--target", "task:"), ("0",), ("x",)]
)
def test_a_revision_or_a_target_must_be_named(words: tuple[str, ...]) -> None:
    refused: Said = stepacc("lineage", "annotation", *words)
    assert (refused.code, refused.out) == (2, "")
    assert refused.complaint.endswith(".")


def test_a_wrong_defs_file_costs_only_what_it_says(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))
    configure(tmp_path, store={"kind": "nothing"})

    said = stepacc("lineage", "trace", "a-one", "--json")

    assert said.code == 0
    assert "defs.yaml" in said.err
    [document] = said.rows
    assert (document["store"], len(document["evaluations"])) == (None, 3)
    assert scene.after.run_id == document["evaluations"][-1]["dagster_run_id"]


def test_what_was_erased_is_said_to_be(workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))
    workshop.land(agent_trace("t", MONDAY, "lookup", session="chat"))
    workshop.annotate("trace", "t", ["lookup"])
    assert workshop.run(MONDAY).error is None
    for table in ("traces", "sessions"):
        workshop.execute(f"UPDATE stepacc.{table} SET erased_at = '2026-11-30 12:00Z'")  # noqa: S608 (as listed)
    workshop.execute("UPDATE stepacc.annotations SET erased_at = '2026-11-30 12:00Z', value = 'null'")

    [trace], [session], [said] = documents("trace", "t"), documents("session", "chat"), documents("annotation", 1)

    erased = "2026-11-30T12:00:00+00:00"
    assert (trace["trace"]["erased_at"], session["session"]["erased_at"], said["erased_at"]) == (erased,) * 3
    assert (said["in_force"], trace["evaluations"][0]["annotation"]["in_force"]) == (False, False)
    for words in (("trace", "t"), ("session", "chat"), ("annotation", "1")):
        assert "erased 2026-11-30 12:00:00 UTC" in shown(*words)
    told = shown("trace", "t")
    assert "(erased) by qa@example.org" in told
    assert f"Trace t of source {SOURCE}, erased" in told
    assert not {"root", "spans", "gaps"} & {line.split()[0] for line in told.splitlines() if line.strip()}
    assert f"Session chat of source {SOURCE}, erased" in shown("session", "chat")


# the scores of one trace or session, and their pictures


def test_a_trace_has_a_row_for_each_version_and_says_which_is_in_use_and_what_it_was_measured_against(
    scene: Scene,
) -> None:
    said = stepacc("scores", "--trace", "a-one", "--json")
    first, second = scene.annotation("refund", 1), scene.annotation("refund", 2)

    assert (said.code, said.err) == (0, "")
    names = ("source", "metric", "metric_version", "score", "expected_from", "measured_against", "annotation_id")
    assert [tuple(row[name] for name in names) for row in said.rows] == [
        (SOURCE, "agent.step_accuracy", "1.0.0", 1.0, "column", f"annotation {first} of the task, revision 1", first),
        (SOURCE, "agent.step_accuracy", "2.0.0", pytest.approx(2 / 3), "column",
         f"annotation {second} of the task, revision 2", second),
    ]  # fmt: skip
    assert [row["dagster_run_id"] for row in said.rows] == [scene.old.run_id, scene.after.run_id]
    assert len({row["config_hash"] for row in said.rows}) == 2
    table = " ".join(stepacc("scores", "--trace", "a-").out.split())
    assert f"no 1.000 annotation {first} of the task, revision 1" in table
    assert f"yes 0.667 annotation {second} of the task, revision 2" in table


@pytest.mark.usefixtures("scene")
def test_the_stored_alignments_are_drawn_as_the_renderer_draws_them() -> None:
    rows = stepacc("scores", "--trace", "b-two", "--json").rows
    shown_of_trace = stepacc("scores", "--trace", "b-two", "--picture").out
    shown_of_session = stepacc("scores", "--session", "chat", "--picture").out

    assert len(rows) == 2
    for row in rows:
        assert row["metadata"]["steps"]
        heading = f"trace b-two, agent.step_accuracy {row['metric_version']}, score {row['score']:.3f}:"
        assert f"{heading}\n\n{picture(row['metadata'])}\n" in shown_of_trace
    assert "session chat, agent.step_accuracy 1.0.0, score 1.000:" in shown_of_session
    assert "stepacc scores --trace b-two --picture" in shown("trace", "b-two")
    assert "stepacc scores --session chat --picture" in shown("session", "chat")


@pytest.mark.usefixtures("scene")
def test_the_worst_of_a_selection_are_drawn_the_worst_first() -> None:
    every = stepacc("scores", *HERE, "--json").rows
    said = stepacc("scores", *HERE, "--worst", "2", "--picture")

    scored = sorted((row["score"], row["partition_id"]) for row in every if row["score"] is not None)
    assert len(scored) == 3
    assert len(every) > 3
    drawn = [line.split(",")[0] for line in said.out.splitlines() if line.endswith(":") and ", score " in line]
    assert drawn == [f"trace {ident}" for _, ident in scored[:2]]
    assert said.err == "2 of 3 with a score.\n"
    assert [row["partition_id"] for row in stepacc("scores", *HERE, "--worst", "1", "--json").rows] == [scored[0][1]]
    assert stepacc("scores", *HERE, "--type", "session", "--json").rows == []


@pytest.mark.usefixtures("scene")
def test_what_has_no_alignment_is_said_to_have_none_and_what_is_unknown_is_refused() -> None:
    bare = stepacc("scores", "--trace", "d-bare", *HERE, "--picture")
    assert (bare.code, bare.out.count("failed: missing_expected_steps")) == (0, 2)
    assert "no alignment to draw" in bare.err
    never = stepacc("scores", "--trace", "d-bare", "--source", "other")
    assert (never.code, never.out, "has no score" in never.err) == (0, "", True)
    refused = stepacc("scores", "--trace", "nobody")
    assert (refused.code, refused.out) == (1, "")


# where a store keeps a trace


def place_finds(workshop: Workshop, trace_id: str) -> Any:
    """The document of a trace, once the place it tells was seen to hold the trace."""
    [document] = documents("trace", trace_id)
    schema, table, column = document["store"]["trace_column"].split(".")
    assert document["store"]["tables"][0] == f"{schema}.{table}"
    for name in document["store"]["tables"]:
        assert workshop.rows(f"SELECT count(*) FROM {name}")[0].count  # noqa: S608 (named by the document)
    query = f"SELECT count(*) FROM {schema}.{table} WHERE CAST({column} AS text) = :id"  # noqa: S608 (as above)
    assert workshop.rows(query, id=trace_id)[0].count
    return document


@pytest.mark.parametrize("store", STORES)
def test_the_place_in_a_store_is_where_the_trace_is(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: StoreName
) -> None:
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))
    configure(tmp_path, store={"kind": store})
    load(workshop.engine, store)
    assert workshop.run(DAY.key, store=SETTINGS[store]()).error is None
    trace_id = min(TRUE_CALLS[store])

    document = place_finds(workshop, trace_id)

    assert (document["store"]["kind"], document["landed"]) == (store, None)
    assert f"{store}: {document['store']['tables'][0]}" in shown("trace", trace_id)


def test_the_place_in_a_table_of_ones_own_is_where_the_trace_is(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"trace_id": "run", "span_id": "step", "name": "what", "start_time": "at", "arrival": "no"}
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))
    configure(tmp_path, store={"kind": "table", "table": "work", "columns": columns, "project_column": "bot",
                               "projects": ["refunds"]})  # fmt: skip
    workshop.execute("CREATE TABLE public.work (run text, step text, what text, at bigint, bot text, no serial)")
    workshop.execute("INSERT INTO public.work VALUES ('r-1', 's', 'x', :at, 'refunds')", at=DAY.start_ns + 1)
    table = TableSettings("work", TableColumns(**columns), project_column="bot", projects=("refunds",))
    assert workshop.run(DAY.key, store=table).error is None

    document = place_finds(workshop, "r-1")

    assert document["store"]["projects"] == ["refunds"]
    assert "table, refunds of it: public.work" in shown("trace", "r-1")


# the views


def test_by_sql_every_revision_has_its_scores_or_a_row_without(scene: Scene) -> None:
    query = """
        SELECT annotation_target_id || ' ' || annotation_revision AS said, annotation_in_force AS in_force,
               count(score_id) AS scores, count(*) FILTER (WHERE state = 'current') AS current
        FROM stepacc.annotation_scores WHERE source = 'support' GROUP BY 1, 2 ORDER BY 1
    """
    rows = stepacc("db", "query", "--json", query).rows

    assert scene.after.success
    assert [tuple(row.values()) for row in rows] == [
        ("c-own 1", False, 2, 1),
        ("c-own 2", False, 0, 0),
        ("chat 1", False, 2, 1),
        ("chat 2", False, 0, 0),
        ("refund 1", False, 4, 2),
        ("refund 2", True, 3, 3),
    ]


DOC = (Path(__file__).parents[2] / "docs" / "lineage.md").read_text("utf-8")
STATEMENTS = re.findall(r"^```sql\n(.*?)^```\n(?:\n```\n┃(.*?)┃\n)?", DOC, flags=re.MULTILINE | re.DOTALL)
"""Each statement of the page on lineage, and the heads of the columns that the page shows of its result."""


@pytest.mark.parametrize(("statement", "heads"), STATEMENTS, ids=range(len(STATEMENTS)))
@pytest.mark.usefixtures("scene")
def test_the_statements_of_the_page_run_and_give_the_columns_it_shows(statement: str, heads: str) -> None:
    said = stepacc("db", "query", statement)

    assert said.code == 0
    shown_heads = [head.strip() for line in said.out.splitlines() if line.startswith("┃") for head in line.split("┃")]
    assert [head.strip() for head in heads.split("┃")] == [*filter(None, shown_heads)] or not heads


EVALUATIONS = st.lists(
    st.tuples(
        st.sampled_from("pq"),  # partition
        st.sampled_from(["1", "2"]),  # metric version
        st.sampled_from("cd"),  # config
        st.integers(0, 3),  # annotation, none where 0
        st.integers(0, 3),  # moment of confirmation
        st.booleans(),  # retired
    ),
    max_size=12,
    unique_by=lambda row: row[:4],
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=EVALUATIONS, withdrawn=st.sets(st.integers(1, 3)))
def test_the_state_of_a_score_is_told_by_what_followed_it(
    migrated_engine: sa.Engine, rows: list[tuple[str, str, str, int, int, bool]], withdrawn: set[int]
) -> None:
    with migrated_engine.connect() as conn:
        annotations = [_annotation(conn, revision, withdrawn=revision in withdrawn) for revision in (1, 2, 3)]
        ids = [_evaluation(conn, row, [None, *annotations][row[3]]) for row in rows]
        told = conn.execute(sa.text("SELECT score_id, state, annotation_in_force FROM stepacc.score_lineage")).all()
        back = conn.execute(sa.text("SELECT score_id, state, annotation_id FROM stepacc.annotation_scores")).all()
        current = set(conn.scalars(sa.text("SELECT id FROM stepacc.current_scores")))
        conn.rollback()
    newest: dict[tuple[str, str, str], tuple[int, int]] = {}
    for ident, row in zip(ids, rows, strict=True):
        newest[row[:3]] = max(newest.get(row[:3], (-1, 0)), (row[4], ident))
    expected = {
        ident: "superseded" if newest[row[:3]][1] != ident else "retired" if row[5] else "current"
        for ident, row in zip(ids, rows, strict=True)
    }
    assert {row.score_id: row.state for row in told} == expected
    assert {ident for ident, state in expected.items() if state == "current"} == current
    in_force = {
        ident: row[3] == 3 and 3 not in withdrawn if row[3] else None for ident, row in zip(ids, rows, strict=True)
    }
    assert {row.score_id: row.annotation_in_force for row in told} == in_force
    scored = {row.score_id: (row.state, row.annotation_id) for row in back if row.score_id is not None}
    assert scored == {
        ident: (expected[ident], annotations[row[3] - 1]) for ident, row in zip(ids, rows, strict=True) if row[3]
    }
    assert {row.annotation_id for row in back} == set(annotations)
    assert len(back) == len(scored) + len(set(annotations) - {annotation for _, annotation in scored.values()})


def _annotation(conn: sa.Connection, revision: int, *, withdrawn: bool) -> int:
    statement = sa.text("""
        INSERT INTO stepacc.annotations (source, target_type, target_id, partition_type, key, revision, value,
                                         value_hash, author, note, origin)
        VALUES ('s', 'task', 't', 'trace', 'expected_steps', :revision, CAST(:value AS jsonb), :hash, '', '', '')
        RETURNING id
    """)
    said = {"value": None, "hash": None} if withdrawn else {"value": '["a"]', "hash": "h"}
    return int(conn.execute(statement, {"revision": revision, **said}).scalar_one())


def _evaluation(conn: sa.Connection, row: tuple[str, str, str, int, int, bool], annotation: int | None) -> int:
    statement = sa.text("""
        INSERT INTO stepacc.scores (source, partition_type, partition_id, window_key, metric, metric_version,
                                    config_hash, annotation_id, status, score, confirmed_at, retired_at)
        VALUES ('s', 'trace', :partition, '2026-01-01', 'm', :version, :config, :annotation, 'scored', 1,
                to_timestamp(:at), CASE WHEN :retired THEN to_timestamp(:at) END)
        RETURNING id
    """)
    partition, version, config, _, at, retired = row
    values = {"partition": partition, "version": version, "config": config, "at": at, "retired": retired}
    return int(conn.execute(statement, {**values, "annotation": annotation}).scalar_one())
