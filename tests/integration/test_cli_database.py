"""`stepacc db upgrade` and `stepacc import traces`, and what any command says of a database it cannot use."""

import gzip
import json
import os
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.cli_access import COMMAND, RECORDED, RECORDED_SESSION, Said, stepacc, stepacc_process
from tests.fidelity import TRACES, raw_spans

SPANS = len(raw_spans(str(RECORDED.relative_to(TRACES))))
LINE = RECORDED.read_text("utf-8")
FOREIGN = json.dumps(
    {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "GET /"}]}]}]}
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, migrated_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of stepacc beside a migrated database."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def landed(*files: str | Path) -> Said:
    """Import files as of the source `shop`."""
    return stepacc("import", "traces", "--source", "shop", "--json", *files)


def one(engine: sa.Engine, statement: str) -> Any:
    """Ask for one value."""
    with engine.connect() as connection:
        return connection.execute(sa.text(statement)).scalar_one()


def count(engine: sa.Engine) -> int:
    """How many spans have landed."""
    number: int = one(engine, "SELECT count(*) FROM stepacc.otel_spans WHERE source = 'shop'")
    return number


# the schema


def test_upgrade_creates_the_tables_and_a_second_one_changes_nothing(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPACC_DATABASE_URL", postgres_url)
    first = stepacc("db", "upgrade")
    assert (first.code, first.out) == (0, "")
    assert first.err.startswith("The schema `stepacc` is at revision ")
    [row] = stepacc("db", "upgrade", "--json").rows
    assert list(row) == ["schema", "revision"]
    assert first.err.endswith(f"{row['revision']}.\n")
    assert landed(RECORDED).code == 0


def test_upgrades_by_several_processes_at_once_all_succeed(postgres_url: str) -> None:
    said: list[Said] = []

    def upgrade() -> None:
        said.append(stepacc_process("db", "upgrade", "--json", environment={"STEPACC_DATABASE_URL": postgres_url}))

    threads = [threading.Thread(target=upgrade) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(each.code, each.err) for each in said] == [(0, "")] * 3
    assert len({each.out for each in said}) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["import", "traces", "--source", "shop", str(RECORDED)],
        ["annotations", "list", "--source", "shop"],
        ["annotations", "withdraw", "--source", "shop", "x"],
        ["ingest", "--source", "shop"],
        ["materialize", "--source", "shop"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_database_without_the_tables_is_told_with_the_command_that_makes_them(
    arguments: list[str], home: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "defs" / "shop").mkdir(parents=True)
    attributes = {"source": "shop", "start_date": "2026-01-01"}
    document = {"type": "stepacc_dagster.StepAccuracyComponent", "attributes": attributes}
    (home / "defs" / "shop" / "defs.yaml").write_text(json.dumps(document))
    monkeypatch.setenv("STEPACC_DATABASE_URL", postgres_url)
    said = stepacc(*arguments)
    assert (said.code, said.out) == (1, "")
    assert "`stepacc db upgrade`" in said.complaint


URLS = {
    "mysql://ann:s3cret@host/d": "postgresql://",
    "postgresql+asyncpg://ann:s3cret@host/d": "asyncpg",
    "postgresql://ann:s3cret@127.0.0.1:1/d": "127.0.0.1:1/d",
    "postgresql://ann:s3cret@host.invalid/d": "host.invalid",
    "postgresql://ann:s3cret@host:port/d": "postgresql://user:password@host",
    "host=127.0.0.1 password=s3cret": "postgresql://user:password@host",
}


@pytest.mark.parametrize("command", ["db upgrade", "annotations list --source shop", "demo", "dev --port 38917"])
@pytest.mark.parametrize("url", URLS)
def test_a_url_of_no_use_is_told_in_one_sentence_without_its_password(
    url: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPACC_DATABASE_URL", url)
    said = stepacc(*command.split())
    assert (said.code, said.out) == (1, "")
    assert URLS[url] in said.complaint
    assert "s3cret" not in said.err


def test_what_a_database_refuses_midway_is_told_in_one_sentence(migrated_engine: sa.Engine, migrated_url: str) -> None:
    with migrated_engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE stepacc.otel_spans ADD CHECK (source <> 'shop')"))
    said = stepacc_process(
        "import", "traces", "--source", "shop", RECORDED, environment={"STEPACC_DATABASE_URL": migrated_url}
    )
    assert said.code == 1
    assert said.complaint.startswith("The database says: ")
    assert "violates check constraint" in said.complaint
    assert "INSERT" not in said.err


# landing


def test_landing_says_what_was_new(migrated_engine: sa.Engine) -> None:
    said = stepacc("import", "traces", "--source", "shop", RECORDED)
    assert (said.code, said.out) == (0, "")
    assert said.err.splitlines() == [f"{RECORDED}, source shop: {SPANS} spans new, 0 changed, 0 there already"]
    assert count(migrated_engine) == SPANS


def test_landing_again_changes_nothing(migrated_engine: sa.Engine, tmp_path: Path) -> None:
    copies = [tmp_path / "copy.gz", tmp_path / "copy.json"]
    copies[0].write_bytes(gzip.compress(LINE.encode()))
    copies[1].write_text(json.dumps(json.loads(LINE), indent=1))
    assert landed(RECORDED).rows == [
        {"file": str(RECORDED), "source": "shop", "new": SPANS, "changed": 0, "same": 0, "erased": 0, "redacted": {}}
    ]
    newest = "SELECT max(written_in) FROM stepacc.otel_spans"
    written = one(migrated_engine, newest)
    again = landed(RECORDED, *copies).rows
    assert [(row["new"], row["changed"], row["same"]) for row in again] == [(0, 0, SPANS)] * 3
    assert one(migrated_engine, newest) == written


def test_standard_input_and_pipes_are_landed(migrated_engine: sa.Engine) -> None:
    said = stepacc_process("import", "traces", "--source", "shop", "-", given=gzip.compress(LINE.encode()))
    assert (said.code, count(migrated_engine)) == (0, SPANS)
    script = 'file=$1; shift; cat "$file" | "$@" /dev/stdin'
    shell: list[str | Path] = ["/bin/sh", "-c", script, "sh", RECORDED_SESSION, *COMMAND]
    said = stepacc_process("import", "traces", "--source", "shop", "--json", command=shell)
    assert (said.code, said.rows[0]["new"]) == (0, len(raw_spans(str(RECORDED_SESSION.relative_to(TRACES)))))


def test_broken_lines_are_named_and_the_good_ones_landed(tmp_path: Path, migrated_engine: sa.Engine) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text(f"not json\n{LINE}")
    said = landed(path)
    assert (said.code, said.rows[0]["new"]) == (1, SPANS)
    [problem] = said.unread
    assert problem.startswith(f"{path}: Line 1 ")
    assert count(migrated_engine) == SPANS


def test_a_file_no_recogniser_knows_lands_nothing_and_costs_the_others_nothing(
    tmp_path: Path, migrated_engine: sa.Engine
) -> None:
    path = tmp_path / "http.jsonl"
    path.write_text(FOREIGN)
    said = landed(path, RECORDED)
    assert said.code == 1
    assert [row["file"] for row in said.rows] == [str(RECORDED)]
    [problem] = said.unread
    assert problem.startswith(f"{path}: ")
    assert "OpenInference" in problem
    assert count(migrated_engine) == SPANS


def test_damaged_and_binary_files_are_named_and_cost_the_others_nothing(
    tmp_path: Path, migrated_engine: sa.Engine
) -> None:
    noise = bytes(range(256)) * 20
    for name, content in (("a.gz", b"\x1f\x8b" + noise), ("b.bin", noise), ("c.gz", gzip.compress(noise)[:-9])):
        (tmp_path / name).write_bytes(content)
    said = landed(*sorted(tmp_path.iterdir()), RECORDED)
    assert said.code == 1
    assert {problem.split(": ")[0] for problem in said.unread} == {
        str(tmp_path / name) for name in ("a.gz", "b.bin", "c.gz")
    }
    assert count(migrated_engine) == SPANS


def test_a_terminal_shows_the_progress_and_a_file_does_not(tmp_path: Path) -> None:
    many = tmp_path / "many.jsonl"
    document = json.loads(LINE)
    with many.open("w") as out:
        for number in range(300):
            out.write(json.dumps(document).replace(document_trace(document), f"{number + 1:032x}") + "\n")
    terminal, end = os.openpty()
    shown: list[bytes] = []
    with subprocess.Popen([*COMMAND, "import", "traces", "--source", "shop", many], stderr=end) as process:
        os.close(end)
        while piece := _read(terminal):
            shown.append(piece)
    os.close(terminal)
    assert process.returncode == 0
    assert re.search(rb"many\.jsonl \d+ spans", b"".join(shown))
    assert f"{300 * SPANS} spans new".encode() in b"".join(shown)
    quiet = stepacc_process("import", "traces", "--source", "shop", RECORDED)
    assert len(quiet.err.splitlines()) == 1
    assert "\x1b" not in quiet.err


def document_trace(document: dict[str, Any]) -> str:
    """The trace id of a document."""
    trace_id: str = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"]
    return trace_id


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux's way to say that the other end is closed
        return b""
