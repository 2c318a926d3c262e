"""Of 500 secrets that come in by every door, in every place, none is found afterwards: in no table, event or output."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from stepacc_dagster.database import DAGSTER_SCHEMA, DAGSTER_URL_VARIABLE
from tests.cli_access import stepacc
from tests.core.redaction_corpus import Sensitive, corpus
from tests.integration.collect_access import JSON, PROTOBUF, SOURCE, collecting
from tests.integration.conftest import Server, opened

DAY = "2026-11-30"
START = int(datetime(2026, 11, 30, tzinfo=UTC).timestamp()) * 1_000_000_000
THEIRS = "theirs"
PERSON = "ann@example.org"
PASSWORD = "correct horse battery"  # noqa: S105 (made up)
CORPUS = corpus(500)


@dataclass
class Stored:
    """What was done, and what it said."""

    engine: sa.Engine
    dagster: sa.Engine
    environment: dict[str, str]
    said: list[str] = field(default_factory=list)

    def run(self, *arguments: str | Path, code: int = 0) -> str:
        """Run a command, keep all it says, and return it."""
        done = stepacc(*arguments)
        self.said += [done.out, done.err]
        assert done.code == code, done.err
        return done.out + done.err


def spans_of(parts: Sequence[Sensitive], trace: int) -> list[dict[str, Any]]:
    """OTLP spans of an agent's trace, in which each thing stands in another place."""
    root = span(trace, 1, "invoke_agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"})
    root["attributes"] += pairs({"user.id": PERSON, "session.id": PERSON, "stepacc.task_id": "refund"})
    return [root, *(told(each, trace, number) for number, each in enumerate(parts, start=2))]


def told(each: Sensitive, trace: int, number: int) -> dict[str, Any]:
    """A tool span that has something in one of the places of a span."""
    text = each.written
    place = number % 7
    attributes: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "note_down"}
    if place == 0:
        attributes["gen_ai.tool.call.arguments"] = json.dumps({"note": text, "n": number})
    elif place == 1:
        attributes["gen_ai.tool.call.result"] = json.dumps({"found": [json.dumps({"deep": text})]})
    elif place == 2:
        attributes["output.value"] = f"It says {text}"
    elif place == 3:
        attributes[f"about {text}"] = True
    made = span(trace, number, "execute_tool note_down", attributes, parent=1)
    if place == 4:
        made["status"] = {"code": 2, "message": f"cannot use {text}"}
    elif place == 5:
        made["events"] = [{"name": "exception", "timeUnixNano": "1", "attributes": pairs({"exception.message": text})}]
    elif place == 6:
        made["attributes"] += pairs({"gen_ai.input.messages": json.dumps([{"parts": [{"content": text}]}])})
    return made


def span(trace: int, number: int, name: str, attributes: dict[str, Any], parent: int | None = None) -> dict[str, Any]:
    start = START + number * 1_000_000
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": "" if parent is None else f"{parent:016x}",
        "name": name,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 500_000),
        "attributes": pairs(attributes),
    }


def pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them."""
    return [
        {"key": key, "value": {"boolValue" if isinstance(value, bool) else "stringValue": value}}
        for key, value in attributes.items()
    ]


def request(spans: Sequence[dict[str, Any]], resource: str = "") -> dict[str, Any]:
    """A request of these spans."""
    scope = {"scope": {"name": "tests"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {"attributes": pairs({"host": resource})}, "scopeSpans": [scope]}]}


def configure(folder: Path, source: str, **more: Any) -> None:
    """Write the `defs.yaml` of a source."""
    (folder / source).mkdir(parents=True)
    attributes = {"source": source, "start_date": DAY, "partition_types": ["trace", "session"], **more}
    document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": attributes}
    (folder / source / "defs.yaml").write_text(json.dumps(document))


@pytest.fixture(scope="module")
def stored(
    server: Server, _migrated_template: str, _dagster_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stored]:
    """Everything came in by its door, was evaluated, and shown."""
    folder = tmp_path_factory.mktemp("redaction")
    with (
        server.database(_migrated_template) as url,
        server.database(_dagster_template) as own,
        opened(url) as engine,
        opened(own) as dagster,
        pytest.MonkeyPatch.context() as patch,
    ):
        storage = sa.make_url(own).update_query_dict({"options": f"-csearch_path={DAGSTER_SCHEMA}"})
        environment = {
            DAGSTER_URL_VARIABLE: storage.set(drivername="postgresql").render_as_string(hide_password=False),
            "STEPACC_DATABASE_URL": url,
            "STEPACC_HOME": str(folder / "home"),
        }
        for name, value in environment.items():
            patch.setenv(name, value)
        configure(folder / "home" / "defs", SOURCE)
        table = {"kind": "table", "schema": "theirs", "table": "spans", "columns": COLUMNS}
        configure(folder / "home" / "defs", THEIRS, store=table)
        made = Stored(engine, dagster, environment)
        _import(made, folder, CORPUS[:200])
        _collect(made, url, CORPUS[200:300])
        _annotate(made, folder, CORPUS[300:400])
        _fill_their_table(engine, CORPUS[400:])
        for source in (SOURCE, THEIRS):
            made.run("materialize", "--source", source, "--from", DAY, "--to", DAY)
            made.run("scores", "--source", source, "--json")
        made.run("annotations", "list", "--source", SOURCE, "--history")
        made.run("lineage", "trace", f"{1:032x}", "--json")
        yield made


@pytest.fixture(autouse=True)
def _its_environment(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in stored.environment.items():
        monkeypatch.setenv(name, value)


def _import(made: Stored, folder: Path, parts: Sequence[Sensitive]) -> None:
    lines = [json.dumps(request(spans_of(parts[at : at + 40], 1 + at), parts[at].written)) for at in range(0, 160, 40)]
    records = [
        {
            "timeUnixNano": str(START),
            "traceId": f"{1:032x}",
            "spanId": f"{2:016x}",
            "eventName": "gen_ai.user.message",
            "body": {"stringValue": each.written},
        }
        for each in parts[160:190]
    ]
    lines.append(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}))
    lines += [f'{{"resourceSpans": [{json.dumps(each.written)} and cut' for each in parts[190:]]
    (folder / "traces.jsonl").write_text("\n".join(lines), "utf-8")
    said = made.run("import", "traces", "--source", SOURCE, folder / "traces.jsonl", code=1)
    assert said.count("not read: ") == 10
    assert re.search(r"redacted: \d+ card, \d+ email, \d+ iban, \d+ jwt, \d+ phone, \d+ private_key", said)


def _collect(made: Stored, url: str, parts: Sequence[Sensitive]) -> None:
    with collecting(url) as collector:
        document = request(spans_of(parts[:50], 1_001), parts[0].written)
        made.said.append(str(collector.post(json.dumps(document).encode(), JSON).body))
        document = request(spans_of(parts[50:], 1_002), parts[50].written)
        for each in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            each.update({name: "ABEi" + each[name][-16:] for name in ("traceId", "spanId")}, parentSpanId="")
        packed = ParseDict(document, ExportTraceServiceRequest()).SerializeToString()
        made.said.append(str(collector.post(packed, PROTOBUF).body))
        broken = f'{{"resourceSpans": {parts[0].written} {parts[1].written}'.encode()
        answer = collector.post(broken, JSON)
        assert answer.status == 400
        made.said.append(str(answer.body))
        made.said.append(json.dumps(collector.end()))


def _annotate(made: Stored, folder: Path, parts: Sequence[Sensitive]) -> None:
    entries = [
        {
            "target": {"type": "task", "id": f"{number} {each.written}"},
            "expected_steps": ["note_down", [f"look up {each.written}", "refund"]],
            "note": f"as {each.written} said",
        }
        for number, each in enumerate(parts)
    ]
    missing = [f"look up {each.written}" for each in parts[:5]]
    entries.append({"target": {"type": "task", "id": "refund"}, "expected_steps": ["support", *missing, "note_down"]})
    entries.append({"target": {"type": "session", "id": PERSON}, "expected_steps": ["support", "note_down"]})
    (folder / "expected.json").write_text(json.dumps(entries))
    made.run("annotations", "import", "--source", SOURCE, folder / "expected.json", "--json")


COLUMNS = {
    "trace_id": "trace_id",
    "span_id": "span_id",
    "parent_span_id": "parent",
    "name": "name",
    "start_time": "started",
    "end_time": "ended",
    "attributes": "attributes",
    "status": "status",
    "status_message": "message",
    "arrival": "number",
}


def _fill_their_table(engine: sa.Engine, parts: Sequence[Sensitive]) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE SCHEMA theirs"))
        connection.execute(
            sa.text("""
                CREATE TABLE theirs.spans (
                    number bigserial, trace_id text, span_id text, parent text, name text, started bigint, ended bigint,
                    attributes jsonb, status text, message text
                )
            """)
        )
        for each in spans_of(parts, 7):
            values = {pair["key"]: next(iter(pair["value"].values())) for pair in each["attributes"]}
            connection.execute(
                sa.text("""
                    INSERT INTO theirs.spans
                        (trace_id, span_id, parent, name, started, ended, attributes, status, message)
                    VALUES (:trace, :span, :parent, :name, :start, :end, CAST(:attributes AS jsonb), 'ERROR', :message)
                """),
                {
                    "trace": each["traceId"],
                    "span": each["spanId"],
                    "parent": each["parentSpanId"],
                    "name": each["name"],
                    "start": int(each["startTimeUnixNano"]),
                    "end": int(each["endTimeUnixNano"]),
                    "attributes": json.dumps(values | {"db.password": PASSWORD}),
                    "message": each.get("status", {}).get("message", ""),
                },
            )


def everything(engine: sa.Engine, schema: str) -> str:
    """All rows of all tables of a schema, as text."""
    with engine.connect() as connection:
        tables = connection.scalars(
            sa.text("SELECT tablename FROM pg_tables WHERE schemaname = :schema"), {"schema": schema}
        ).all()
        rows = [
            connection.scalars(sa.text(f'SELECT CAST(to_jsonb(each) AS text) FROM {schema}."{table}" each')).all()  # noqa: S608
            for table in tables
        ]
    return "\n".join(text for table in rows for text in table)


def found_in(text: str) -> list[Sensitive]:
    """What of the corpus is in a text, also where JSON wrote it."""
    return [each for each in CORPUS if each.value in text or json.dumps(each.value)[1:-1] in text]


def test_none_of_it_is_in_a_table_of_stepacc(stored: Stored) -> None:
    text = everything(stored.engine, "stepacc")

    assert found_in(text) == []
    assert PERSON not in text
    assert PASSWORD not in text
    assert text.count("[redacted:") > 500


def test_none_of_it_is_in_an_event_of_dagster(stored: Stored) -> None:
    text = everything(stored.dagster, "dagster")

    assert "redacted_email" in text
    assert found_in(text) == []
    assert PERSON not in text


def test_none_of_it_is_in_what_commands_and_the_receiver_said(stored: Stored) -> None:
    text = "\n".join(stored.said)

    assert "[redacted:" in text
    assert found_in(text) == []
    assert PERSON not in text


def test_sessions_and_tasks_are_met_by_their_redacted_ids(stored: Stored) -> None:
    with stored.engine.connect() as connection:
        found = connection.execute(
            sa.text("SELECT source, status FROM stepacc.current_scores WHERE partition_type = 'session'")
        ).all()

    assert (SOURCE, "scored") in [tuple(row) for row in found]
    assert f"{1:032x}" in stored.run("lineage", "session", PERSON, "--source", SOURCE)


def test_another_key_is_refused_and_none_for_a_shared_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    monkeypatch.setenv("STEPACC_REDACTION_KEY", "another key that is as long as that one")
    other = stepacc("import", "traces", "--source", SOURCE, tmp_path / "empty.jsonl")
    monkeypatch.setenv("STEPACC_REDACTION_KEY", "short")
    short = stepacc("import", "traces", "--source", SOURCE, tmp_path / "empty.jsonl")
    monkeypatch.delenv("STEPACC_REDACTION_KEY")
    none = stepacc("import", "traces", "--source", SOURCE, tmp_path / "empty.jsonl")

    assert [said.code for said in (other, short, none)] == [1, 1, 1]
    assert "is not the one that the values in this database were redacted with" in other.complaint
    assert "holds 5 characters, and 32 are needed" in short.complaint
    assert "STEPACC_REDACTION_KEY is not set" in none.complaint


def test_a_user_is_erased_by_the_id_that_was_redacted(stored: Stored) -> None:
    said = stepacc("erase", "--user", PERSON, "--yes", "--json")

    assert said.code == 0
    [document] = said.rows
    assert document["removed"]["traces"] == 7
    with stored.engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM stepacc.otel_spans")) == 0
        assert connection.scalar(sa.text("SELECT count(*) FROM stepacc.spans")) == 0
