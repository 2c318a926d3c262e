"""Scores written back over HTTP: each once, by version, whatever the server says meanwhile, and no secret is shown."""

import logging
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_dagster.catalog import SourceKeys
from stepacc_dagster.errors import WriteBackError
from stepacc_dagster.evaluators import evaluator_of, evaluators_of
from stepacc_dagster.failures import is_transient
from stepacc_dagster.sources import MetricChoice
from stepacc_dagster.storage.score_rows import ScoreRow
from stepacc_dagster.storage.scores import write_scores
from stepacc_dagster.writeback.run import WrittenBack, write_back
from stepacc_dagster.writeback.settings import write_back_settings
from tests.integration.conftest import Server as Postgres
from tests.integration.evaluation_access import Workshop, open_workshop, support_source
from tests.integration.evaluation_samples import MONDAY, SOURCE, agent_trace, day
from tests.integration.write_back_access import Server, running_server

METRIC = "agent.step_accuracy"
KINDS = ("phoenix", "mlflow", "langfuse", "otlp")
NEW, OLD = "2.0.0", "1.0.0"


@pytest.fixture
def engine(migrated_engine: sa.Engine) -> sa.Engine:
    """A database of the test's own, with the tables of stepacc."""
    return migrated_engine


@pytest.fixture
def workshop(server: Postgres, _migrated_template: str, _dagster_template: str) -> Iterator[Workshop]:
    """A Dagster instance and databases of the test's own."""
    with open_workshop(server, _migrated_template, _dagster_template) as opened:
        yield opened


@pytest.fixture
def http(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server that scores are written to, with keys for it."""
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-public")
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-s3cret")
    with running_server() as running:
        yield running


def scored(ident: str, score: float | None, **fields: Any) -> ScoreRow:
    """A row; failed where there is no score."""
    status = {"status": "scored"} if score is not None else {"status": "failed", "code": "too_large"}
    return ScoreRow("trace", ident, score=score, **{"steps_hash": "x", **status, **fields})


def store(engine: sa.Engine, *rows: ScoreRow, version: str = NEW) -> None:
    """Write scores as a run does."""
    config = evaluator_of(support_source(metric=MetricChoice(METRIC, version))).config_hash
    with engine.begin() as conn:
        write_scores(
            conn, SOURCE, day(MONDAY), metric=METRIC, metric_version=version, config_hash=config, run_id="r", rows=rows
        )


def written(engine: sa.Engine, http: Server, kind: str, version: str = NEW, **settings: Any) -> WrittenBack:
    """Write scores back to the server as one of its kinds."""
    source = support_source(metric=MetricChoice(METRIC, version))
    chosen = write_back_settings({"kind": kind, "url": http.url, **settings})
    return write_back(engine, source, chosen, evaluators_of(source))


def scores_there(http: Server) -> list[float | None]:
    """The numbers that the server holds."""
    return sorted((_number(told) for told in http.held.values()), key=str)


def _number(told: Any) -> float | None:
    if not isinstance(told, dict):
        return told  # type: ignore[no-any-return] # of Phoenix the number alone is held
    number: float | None = told["value"] if "value" in told else told["feedback"].get("value")
    return number


@pytest.mark.parametrize("kind", ["phoenix", "mlflow", "langfuse"])
def test_a_score_is_there_once_by_version_and_anew_in_its_place(engine: sa.Engine, http: Server, kind: str) -> None:
    store(engine, scored("a", 0.5), scored("b", None))
    store(engine, scored("a", 0.0), version=OLD)
    unscored: list[float | None] = [] if kind == "langfuse" else [None]
    assert written(engine, http, kind).written == 2
    assert scores_there(http) == [0.5, *unscored]
    assert written(engine, http, kind, OLD).written == 1
    assert scores_there(http) == [0.0, 0.5, *unscored]

    asked = http.writes
    assert written(engine, http, kind).written == 0
    assert http.writes == asked  # nothing is sent that is there

    store(engine, scored("a", 0.75, steps_hash="other"))
    assert written(engine, http, kind).written == 1
    assert scores_there(http) == [0.0, 0.75, *unscored]

    with engine.begin() as conn:
        conn.execute(sa.text("DELETE FROM stepacc.write_backs"))
    written(engine, http, kind)
    assert scores_there(http) == [0.0, 0.75, *unscored]

    store(engine, scored("a", None, steps_hash="third"))
    assert written(engine, http, kind).written == 1
    assert scores_there(http) == [0.0, *unscored, *unscored]  # no stale number stays


def test_events_are_sent_once_with_the_names_of_the_conventions(engine: sa.Engine, http: Server) -> None:
    trace = "0123456789abcdef0123456789abcdef"
    store(engine, scored(trace, 0.5, session_id="s"), scored("no id of OpenTelemetry", None))
    assert written(engine, http, "otlp").written == 2
    assert written(engine, http, "otlp").written == 0
    found = {event.trace_id.hex(): event for event in http.events}
    assert len(http.events) == 2
    told = {each.key: each.value for each in found[trace].attributes}
    assert found[trace].event_name == "gen_ai.evaluation.result"
    assert told["gen_ai.evaluation.name"].string_value == METRIC
    assert told["gen_ai.evaluation.score.value"].double_value == 0.5
    assert told["gen_ai.conversation.id"].string_value == "s"
    assert told["stepacc.metric_version"].string_value == NEW
    failed = {each.key: each.value.string_value for each in found[""].attributes}
    assert failed["error.type"] == "too_large"
    assert "gen_ai.evaluation.score.value" not in failed


def test_events_that_a_receiver_leaves_out_are_told(engine: sa.Engine, http: Server) -> None:
    http.left_out = 1
    store(engine, scored("a", 0.5))
    assert written(engine, http, "otlp").problems == ["1 of 1 events were left out: too old"]


@pytest.mark.parametrize("kind", ["phoenix", "mlflow", "langfuse"])
def test_a_score_that_is_refused_costs_no_other_and_is_tried_again(engine: sa.Engine, http: Server, kind: str) -> None:
    store(engine, *(scored(f"t{number}", number / 100) for number in range(60)))
    http.unknown = {"t42"}
    result = written(engine, http, kind)
    assert (result.written, result.refused, len(http.held)) == (59, 1, 59)
    assert "trace t42" in result.problems[0]
    assert "HTTP 40" in result.problems[0]
    if kind == "phoenix":
        assert http.writes < 20  # halved, not one by one
    http.unknown = set()
    assert written(engine, http, kind).written == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_busy_server_is_asked_again(engine: sa.Engine, http: Server, kind: str) -> None:
    store(engine, scored("a", 0.5))
    http.faults.append((503, {"Retry-After": "0"}, "busy"))
    assert written(engine, http, kind).written == 1
    assert http.requests[0] == http.requests[1]


@pytest.mark.parametrize("kind", ["phoenix", "mlflow", "langfuse"])
def test_where_an_answer_was_lost_nothing_is_written_twice(engine: sa.Engine, http: Server, kind: str) -> None:
    store(engine, scored("a", 0.5))
    http.lost = True
    if kind == "mlflow":  # which would make a second one, so that it is looked for first, by another try
        with pytest.raises(WriteBackError, match="try again later") as caught:
            written(engine, http, kind)
        assert is_transient(caught.value)
    assert written(engine, http, kind).written == 1
    assert scores_there(http) == [0.5]


def test_a_server_that_goes_away_keeps_what_it_has_and_another_try_sends_the_rest(
    engine: sa.Engine, http: Server
) -> None:
    store(engine, *(scored(f"t{number:03}", 0.5) for number in range(150)))  # two batches
    ok = (200, {"Content-Type": "application/json"}, "{}")
    http.faults.extend([ok, ok, *[(503, {"Retry-After": "0"}, "")] * 4])
    with pytest.raises(WriteBackError, match="try again later") as caught:
        written(engine, http, "phoenix")
    assert is_transient(caught.value)
    assert written(engine, http, "phoenix").written == 50


def test_a_server_that_is_out_of_order_is_not_asked_for_ever(engine: sa.Engine, http: Server) -> None:
    store(engine, *(scored(f"t{number:03}", 0.5) for number in range(100)))
    http.broken = True
    with pytest.raises(WriteBackError, match="5 scores in a row") as caught:
        written(engine, http, "langfuse")
    assert caught.value.transient
    assert http.writes == 5


@pytest.mark.parametrize(
    ("kind", "settings", "sent"),
    [
        ("phoenix", {"api_key_env": "SOME_KEY"}, "Bearer t0p-s3cret"),
        ("mlflow", {"token_env": "SOME_KEY"}, "Bearer t0p-s3cret"),
        ("mlflow", {"username_env": "SOME_NAME", "password_env": "SOME_KEY"}, "Basic bcOkbWU6dDBwLXMzY3JldA=="),
        ("langfuse", {"public_key_env": "SOME_NAME", "secret_key_env": "SOME_KEY"}, "Basic bcOkbWU6dDBwLXMzY3JldA=="),
        ("otlp", {"headers_env": "SOME_HEADERS"}, "t0p-s3cret"),
    ],
)
def test_credentials_come_from_the_environment_and_are_never_shown(  # noqa: PLR0913, PLR0917 (fixtures and cases)
    engine: sa.Engine,
    http: Server,
    kind: str,
    settings: dict[str, str],
    sent: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    store(engine, scored("a", 0.5))
    for name in settings.values():
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(WriteBackError, match=r"variable SOME_\w+, which write_back names, is not set"):
        written(engine, http, kind, **settings)
    monkeypatch.setenv("SOME_NAME", "mäme")
    monkeypatch.setenv("SOME_KEY", "t0p-s3cret")
    monkeypatch.setenv("SOME_HEADERS", "x-api-key=t0p%2Ds3cret, other=value")
    for status in (401, 400):
        http.faults.append((status, {}, "you sent t0p-s3cret"))
        with pytest.raises(WriteBackError) as caught:
            written(engine, http, kind, **settings)
        assert "s3cret" not in str(caught.value)
    assert written(engine, http, kind, **settings).written == 1
    assert set(http.authorizations) == {sent}
    assert "s3cret" not in caplog.text


def test_a_redirect_takes_no_credentials_elsewhere(
    engine: sa.Engine, http: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", "t0p-s3cret")
    store(engine, scored("a", 0.5))
    with running_server() as elsewhere:
        http.faults.append((307, {"Location": f"{elsewhere.url}/v1/projects"}, ""))
        with pytest.raises(WriteBackError, match="redirect"):
            written(engine, http, "phoenix", api_key_env="SOME_KEY")
        assert elsewhere.requests == []


def test_a_server_that_does_not_answer_may_do_so_later(engine: sa.Engine, http: Server) -> None:
    store(engine, scored("a", 0.5))
    with running_server() as gone:
        pass
    with pytest.raises(WriteBackError, match="does not answer") as caught:
        written(engine, gone, "langfuse")
    assert is_transient(caught.value)
    http.faults.append((200, {}, "<html>"))
    with pytest.raises(WriteBackError, match="no object of JSON") as caught:
        written(engine, http, "phoenix")
    assert not is_transient(caught.value)


def test_erased_and_vanished_traces_are_left_alone(engine: sa.Engine, http: Server) -> None:
    store(engine, scored("kept", 0.5), scored("erased", 0.5), scored("gone", 0.5))
    insert = """
        INSERT INTO stepacc.traces (source, trace_id, window_key, status, settled, span_count, spans_hash, gaps,
                                    erased_at, gone_upstream_at)
        VALUES (:source, :ident, :window, 'OK', true, 0, '', '[]', :erased, :gone)
    """
    with engine.begin() as conn:
        for ident, erased, gone in (("erased", "2026-01-01", None), ("gone", None, "2026-01-01")):
            names = {"source": SOURCE, "ident": ident, "window": MONDAY, "erased": erased, "gone": gone}
            conn.execute(sa.text(insert), names)
    assert written(engine, http, "phoenix").written == 1
    assert {key[1] for key in http.held} == {"kept"}


def test_the_score_of_a_session_is_on_the_session_and_in_mlflow_on_its_first_trace(
    engine: sa.Engine, http: Server
) -> None:
    store(engine, ScoreRow("session", "s", "scored", score=0.5, steps_hash="x", session_id="s"))
    assert written(engine, http, "phoenix").written == 1
    assert list(http.held) == [("session_id", "s", METRIC, next(iter(http.held))[3])]
    http.held.clear()
    assert written(engine, http, "mlflow").refused == 1  # nobody knows its first trace
    first = "0123456789abcdef0123456789abcdef"
    with engine.begin() as conn:
        conn.execute(
            sa.text(
                "INSERT INTO stepacc.sessions (source, session_id, window_key, first_trace_id, trace_count) "
                "VALUES (:source, 's', :window, :first, 1)"
            ),
            {"source": SOURCE, "window": MONDAY, "first": first},
        )
    store(engine, scored(first, 1.0))
    assert written(engine, http, "mlflow").written == 2
    assert {trace for trace, _ in http.held} == {f"tr-{first}"}
    sessions = {told["metadata"].get("mlflow.trace.session"): told["feedback"]["value"] for told in http.held.values()}
    assert sessions == {"s": 0.5, None: 1.0}


def test_an_asset_writes_them_back_where_the_source_says_and_only_there(workshop: Workshop, http: Server) -> None:
    settings = write_back_settings({"kind": "phoenix", "url": http.url})
    workshop.land(agent_trace("a", MONDAY, "search", task="ask"), agent_trace("b", MONDAY, "search", task="ask"))
    workshop.annotate("task", "ask", ["search"])
    http.unknown = {"b"}
    assert workshop.run(MONDAY, write_back=settings).success
    event = workshop.instance.get_latest_materialization_event(dg.AssetKey([SOURCE, "written_back"]))
    assert scores_there(http) == [1.0]
    assert event is not None
    assert event.asset_materialization is not None
    metadata: dict[str, Any] = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    assert (metadata["destination"], metadata["written"], metadata["refused"]) == (f"phoenix {http.url}", 1, 1)
    assert "trace b" in metadata["problems"][0]
    source = support_source()
    assert SourceKeys(source, evaluators_of(source)).written_back is None
