"""Reading scores from the command line: as a table, as JSON, and by SQL of one's own."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from stepacc_core.errors import ConfigError
from stepacc_core.model import PartitionType
from stepacc_dagster.cli import main
from stepacc_dagster.cli.score_table import summary
from stepacc_dagster.database import check_reachable, connect_engine
from stepacc_dagster.definitions import load_sources
from stepacc_dagster.errors import EncodingError
from stepacc_dagster.storage.current import CurrentScore
from tests.integration.conftest import Server


@pytest.fixture
def home(migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one source that starts on a day long ago, over a migrated database with two of its scores."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))
    folder = tmp_path / "defs" / "shop"
    folder.mkdir(parents=True)
    (folder / "defs.yaml").write_text(
        "type: stepacc_dagster.StepAccuracyComponent\nattributes: {source: shop, start_date: 2026-01-01}\n"
    )
    return tmp_path


def run(*words: str, **options: Any) -> Any:
    """Run a command in this process."""
    return CliRunner().invoke(main, [*words], **options)


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _score(score: float | None, code: str | None = None, kind: PartitionType = "trace") -> CurrentScore:
    values: dict[str, Any] = dict.fromkeys(CurrentScore.__slots__)
    status = "scored" if score is not None else "failed"
    own = {"partition_type": kind, "partition_id": "p", "status": status, "code": code, "score": score}
    return CurrentScore(**{**values, **own, "metadata": {}})


def test_a_summary_counts_scores_and_says_why_others_have_none() -> None:
    rows = [_score(1.0), _score(0.5), _score(None, "missing_expected_steps")]

    assert summary(rows) == "2 of 3 traces scored, 0.750 on average; 1 failed: missing_expected_steps."
    assert summary(rows[2:]) == "0 of 1 trace scored; 1 failed: missing_expected_steps."
    assert summary([]) == "There is nothing to score in this range: no trace of the source starts in it."


def test_a_summary_makes_no_mean_of_traces_and_sessions_together() -> None:
    rows = [_score(0.0, kind="session"), _score(1.0), _score(0.5), _score(None, "too_large", "session")]

    assert summary(rows) == (
        "2 of 2 traces scored, 0.750 on average. 1 of 2 sessions scored, 0.000 on average; 1 failed: too_large."
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--trace", "a", "--session", "b"),
        ("--trace", "a", "--worst", "2"),
        ("--session", "a", "--from", "2026-01-02"),
        ("--trace", "a", "--type", "trace"),
        ("--worst", "0"),
    ],
)
def test_options_that_exclude_each_other_are_refused(words: tuple[str, ...]) -> None:
    refused = run("scores", *words)

    assert (refused.exit_code, refused.stdout) == (2, "")


@pytest.mark.usefixtures("home")
def test_without_scores_the_command_says_so() -> None:
    shown, lines = run("scores"), run("scores", "--json")

    assert (shown.exit_code, lines.exit_code) == (0, 0)
    assert "shop: agent.step_accuracy 2.0.0" in shown.stdout
    assert "nothing to score in this range" in shown.stderr
    assert lines.stdout == ""


@pytest.mark.usefixtures("home")
def test_a_query_prints_rows_as_a_table_or_as_json_and_changes_nothing() -> None:
    statement = "SELECT 1 AS one, NULL AS nothing, '[x]' AS \"a [b]\""

    assert "[x]" in run("db", "query", statement).stdout
    assert json.loads(run("db", "query", "--json", input=statement).stdout) == {
        "one": 1,
        "nothing": None,
        "a [b]": "[x]",
    }
    refused = [
        run("db", "query", text)
        for text in ("DELETE FROM stepacc.scores", "selct", "COMMIT; DROP SCHEMA stepacc CASCADE")
    ]
    assert [result.exit_code for result in refused] == [1, 1, 1]
    assert [result.stderr.count("\n") for result in refused] == [1, 1, 1]
    assert run("db", "query", "SELECT count(*) FROM stepacc.scores").exit_code == 0


def test_a_date_without_quotes_is_a_date(home: Path) -> None:
    (source,) = load_sources(home / "defs")

    assert source.start_date == "2026-01-01"


def test_a_bad_source_is_told_before_dagster_starts(home: Path) -> None:
    (home / "defs" / "shop" / "defs.yaml").write_text("type: stepacc_dagster.StepAccuracyComponent\nattributes: {}\n")

    result = run("dev", "--port", str(free_port()))

    assert result.exit_code == 1
    assert "defs.yaml" in result.stderr
    assert "Traceback" not in result.output
    with pytest.raises(ConfigError):
        load_sources(home / "defs")


def test_a_database_in_another_encoding_is_refused_in_a_sentence(server: Server) -> None:
    with server.database() as url:
        admin = connect_engine(url).execution_options(isolation_level="AUTOCOMMIT")
        name = f"{sa.make_url(url).database}_ascii"
        with admin.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"))
        engine = connect_engine(sa.make_url(url).set(database=name).render_as_string(hide_password=False))
        try:
            with pytest.raises(EncodingError, match=r"SQL_ASCII.*ENCODING 'UTF8'"):
                check_reachable(engine)
        finally:
            engine.dispose()
            with admin.connect() as connection:
                connection.execute(sa.text(f"DROP DATABASE {name}"))
            admin.dispose()
