"""Scores written back to real servers of Phoenix and MLflow: read from there as they were written, each once."""

import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import sqlalchemy as sa

from stepacc_core.metrics import config_hash
from stepacc_dagster.errors import WriteBackError
from stepacc_dagster.evaluators import evaluator_of, evaluators_of
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import MetricChoice, Source
from stepacc_dagster.storage.score_rows import ScoreRow
from stepacc_dagster.storage.scores import write_scores
from stepacc_dagster.windows import window_of
from stepacc_dagster.writeback.run import WrittenBack, write_back
from stepacc_dagster.writeback.settings import write_back_settings
from tests.integration.evaluation_access import Workshop, support_source
from tests.integration.evaluation_samples import SOURCE
from tests.integration.store_access import DAY
from tests.live.processes import ask
from tests.live.recorded import recording
from tests.live.servers import LiveServer, Mlflow

pytestmark = pytest.mark.live

PROJECT = "written back"
FILE = "strands/session_two_traces.otlp.jsonl"
METRIC = "agent.step_accuracy"
OLD, NEW = MetricChoice(version="1.0.0"), MetricChoice(version="2.0.0")
EARLIER = window_of("2026-11-28", "daily")  # which is not scored here
URL_VARIABLE = "LIVE_STORE_URL"


def found(live: LiveServer, ident: str, *, session: str | None = None) -> list[dict[str, Any]]:
    """What the server shows of a trace, or of a session, in one form for both servers."""
    if isinstance(live, Mlflow):
        info = json.loads(ask(f"{live.url}/api/3.0/mlflow/traces/{ident}"))["trace"]["trace_info"]
        return [
            {
                "name": each["assessment_name"],
                "by": each["source"]["source_id"],
                "score": each["feedback"].get("value"),
                "why_not": each["feedback"].get("error", {}).get("error_code"),
                "version": each["metadata"]["metric_version"],
            }
            for each in info.get("assessments", [])
            if each["metadata"].get("mlflow.trace.session") == session
        ]
    kind, name = ("trace", ident) if session is None else ("session", session)
    query = urlencode({f"{kind}_ids": name, "limit": 100})
    page = ask(f"{live.url}/v1/projects/{quote(PROJECT)}/{kind}_annotations?{query}")  # type: ignore[attr-defined]
    return [
        {
            "name": each["name"],
            "by": each["identifier"],
            "score": each["result"].get("score"),
            "why_not": each["result"].get("label"),
            "version": each["metadata"]["metric_version"],
        }
        for each in json.loads(page)["data"]
    ]


def by_version(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """The score of each version; there is one of each."""
    scores = {row["version"]: row["score"] for row in rows}
    assert len(scores) == len(rows), rows
    return scores


def test_scores_are_there_once_by_version_and_a_bad_one_costs_no_other(
    live: LiveServer, workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = recording(FILE)
    live.send(sent, PROJECT)
    first, second = (live.trace_id(ident) for ident in sent.trace_ids)
    workshop.annotate("trace", first, ["never called"])
    monkeypatch.setenv(URL_VARIABLE, live.database_url)
    kind = "mlflow" if isinstance(live, Mlflow) else "phoenix"
    settings = write_back_settings({"kind": kind, "url": f"{live.url}/"})  # type: ignore[attr-defined]
    common: dict[str, Any] = {
        "start_date": DAY.key,
        "partition_types": {"trace": "fail", "session": "fail"},
        "store": live.settings(PROJECT),
        "store_url_env": URL_VARIABLE,
        "write_back": settings,
    }

    def written(choice: MetricChoice) -> WrittenBack:
        source: Source = support_source(metric=choice, **common)
        score_window(workshop.engine, source, evaluator_of(source), DAY, "no run")
        return write_back(workshop.engine, source, settings, evaluators_of(source))

    new = support_source(metric=NEW, **common)
    strange = ScoreRow("trace", "0123456789abcdef0123456789abcdef", "scored", score=1.0)
    with workshop.engine.begin() as conn:
        write_scores(
            conn,
            SOURCE,
            EARLIER,
            metric=METRIC,
            metric_version="2.0.0",
            config_hash=evaluator_of(new).config_hash,
            run_id=None,
            rows=[strange],
        )
    outcome = workshop.run(DAY.key, version="2.0.0", **common)

    assert outcome.error is None
    [session] = {row.partition_id for row in workshop.current() if row.partition_type == "session"}
    [of_first] = found(live, first)
    assert (of_first["score"], of_first["why_not"]) == (0.0, None)
    [of_second] = found(live, second)
    assert of_second["score"] is None
    assert "missing_expected_steps" in of_second["why_not"]
    [of_session] = found(live, first, session=session)
    assert of_session["score"] is None
    assert len(workshop.rows("SELECT * FROM stepacc.write_backs")) == 3

    again = written(NEW)
    assert (again.written, again.refused) == (0, 1)  # the trace that the server does not have is tried anew
    assert "0123456789abcdef" in again.problems[0]
    assert written(OLD).written == 3
    assert by_version(found(live, first)) == {"1.0.0": 0.0, "2.0.0": 0.0}

    workshop.annotate("trace", first, ["lookup_order", "never called"])
    workshop.annotate("trace", second, ["never called"])
    workshop.annotate("session", session, ["never called"], "session")
    changed = written(NEW)
    assert (changed.written, changed.refused) == (3, 1)
    assert by_version(found(live, second)) == {"1.0.0": None, "2.0.0": 0.0}
    assert by_version(found(live, first, session=session)) == {"1.0.0": None, "2.0.0": 0.0}
    before = found(live, first)
    assert by_version(before)["1.0.0"] == 0.0

    workshop.execute("TRUNCATE stepacc.write_backs")  # as after a restored backup
    assert written(NEW).written == 3
    assert sorted(map(str, found(live, first))) == sorted(map(str, before))
    assert len(found(live, first, session=session)) == 2


def test_a_server_of_another_kind_is_told_from_one_that_refuses(live: LiveServer, migrated_engine: sa.Engine) -> None:
    other = "phoenix" if isinstance(live, Mlflow) else "mlflow"
    settings = write_back_settings({"kind": other, "url": live.url})  # type: ignore[attr-defined]
    source = support_source()
    rows = [ScoreRow("trace", "a", "scored", score=1.0)]
    evaluator = evaluator_of(source)
    with migrated_engine.begin() as conn:
        write_scores(
            conn, SOURCE, DAY, metric=METRIC, metric_version=evaluator.metric.manifest.version,
            config_hash=config_hash(evaluator.config, source.step_policy.settings()), run_id=None, rows=rows,
        )  # fmt: skip
    with pytest.raises(WriteBackError, match=r"HTTP 4|no object of JSON"):
        write_back(migrated_engine, source, settings, evaluators_of(source))
