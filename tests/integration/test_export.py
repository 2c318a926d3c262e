"""`stepacc export` over scores in a real database: which rows, in which formats, and what becomes of the file."""

import csv
import io
import json
import math
import stat
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from pyarrow import parquet

from stepacc_core.metrics import get_metric
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.export import parquet as parquet_format
from stepacc_dagster.export.columns import COLUMNS, METADATA
from stepacc_dagster.sources import MetricChoice, Source
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.score_rows import ScoreRow
from stepacc_dagster.storage.scores import write_scores
from stepacc_dagster.storage.tables import scores
from tests.cli_access import Said, stepacc, stepacc_process
from tests.integration.conftest import Server, opened
from tests.integration.evaluation_access import support_source
from tests.integration.evaluation_samples import MONDAY, SOURCE, TUESDAY, day

PAGE = (Path(__file__).parents[2] / "docs" / "export.md").read_text()
STEPS = "agent.step_accuracy"
FAMILY = get_metric("agent.trajectory_match").manifest
FORMULA = '=HYPERLINK("http://evil")'
METADATA_OF_A = {"steps": [1.5, "a\nb"], "large": 12345678901234567890123, "name": "Grün"}


def config_of(metric: str) -> str:
    """The hash of the config that the source has now."""
    source: Source = support_source(metric=MetricChoice(metric))
    return evaluator_of(source).config_hash


def row(ident: str, score: float | None, **fields: Any) -> ScoreRow:
    """A row of one step, failed where there is no score."""
    status = {"status": "scored"} if score is not None else {"status": "failed", "code": "too_large"}
    return ScoreRow("trace", ident, score=score, **{"steps_hash": "x", **status, **fields})


def store(engine: sa.Engine, key: str, version: str, config: str, *rows: ScoreRow, metric: str = STEPS) -> None:
    """Write scores as a run does."""
    with engine.begin() as conn:
        write_scores(
            conn, SOURCE, day(key), metric=metric, metric_version=version, config_hash=config, run_id="run", rows=rows
        )


@pytest.fixture(scope="module")
def shop(server: Server, _migrated_template: str) -> Iterator[sa.Engine]:
    """Two days by two versions and two configs of one metric and by a family; one evaluation is superseded."""
    with server.database(_migrated_template) as url, opened(url) as engine:
        config = config_of(STEPS)
        with engine.begin() as conn:
            [annotation] = add_annotations(conn, [AnnotationEntry(SOURCE, "task", "refund", ["a"], author="-qa")])
        told = {"annotation_id": annotation.id, "reference_hash": "r", "expected_from": "annotations"}
        counted = {"total_steps": 3, "correct_steps": 1, "edit_distance": 2, "task_id": FORMULA, "session_id": "s"}
        store(engine, MONDAY, "2.0.0", config, row("a", 0.5, steps_hash="before"), row("'quoted", 1 / 3))
        store(
            engine,
            MONDAY,
            "2.0.0",
            config,
            row("a", 0.1 + 0.2, metadata=METADATA_OF_A, **told, **counted),
            row("b", None, message='He said: "no",\r\nand went'),
            row("nan", math.nan),
            row("none", None, status="not_applicable", code=None, reason="no_required_kinds"),
            ScoreRow("session", "s", "scored", score=1.0, steps_hash="x"),
        )
        store(engine, TUESDAY, "2.0.0", config, row("t", 1.0))
        store(engine, MONDAY, "1.0.0", "other-config", row("a", 0.0))
        store(engine, MONDAY, "2.0.0", "another-config", row("a", 0.0))
        members = [row("f", 1.0, member=name) for name in FAMILY.family]
        family_config = config_of(FAMILY.name)
        store(engine, MONDAY, FAMILY.version, family_config, *members, metric=FAMILY.name)
        yield engine


@pytest.fixture(autouse=True)
def _of_the_shop(shop: sa.Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let commands find the shop's database, and a source that is scored by the newest version."""
    monkeypatch.setenv("STEPACC_DATABASE_URL", shop.url.render_as_string(hide_password=False))
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))
    folder = tmp_path / "defs" / "shop"
    folder.mkdir(parents=True)
    (folder / "defs.yaml").write_text(
        "type: stepacc_dagster.StepAccuracyComponent\n"
        f"attributes: {{source: {SOURCE}, start_date: 2025-11-01, "
        f"metrics: [{{name: {STEPS}}}, {{name: {FAMILY.name}}}]}}\n"
    )


def exported(*words: str | Path) -> Said:
    """Export scores, which works."""
    said = stepacc("export", "--source", SOURCE, *words)
    assert said.code == 0, said.err
    return said


def ids(*words: str) -> list[tuple[str, str, float | None]]:
    """The id, the version and the score of each row."""
    return [(found["partition_id"], found["metric_version"], found["score"]) for found in exported(*words).rows]


def test_every_row_has_every_column_and_missing_values_are_null() -> None:
    rows = exported("--metric", STEPS).rows
    assert {tuple(found) for found in rows} == {tuple(column.name for column in COLUMNS)}
    [first] = [found for found in rows if found["partition_id"] == "a"]
    told = {name: first[name] for name in ("score", "status", "metric", "metric_version", "config_hash", "code")}
    assert told == {
        "score": 0.1 + 0.2,
        "status": "scored",
        "metric": STEPS,
        "metric_version": "2.0.0",
        "config_hash": config_of(STEPS),
        "code": None,
    }
    assert (first["total_steps"], first["annotation_revision"], first["annotation_author"]) == (3, 1, "-qa")
    assert first["state"] == "current"


def test_the_current_scores_by_what_the_source_has_now_come_alone_and_in_order() -> None:
    rows = exported().rows
    assert [found["partition_id"] for found in rows if found["metric"] == STEPS] == [
        "'quoted", "a", "b", "nan", "none", "s", "t"
    ]  # fmt: skip
    assert {found["metric"] for found in rows} == {STEPS, *FAMILY.family}
    assert {found["metric_version"] for found in rows if found["metric"] == STEPS} == {"2.0.0"}
    assert {found["config_hash"] for found in rows if found["metric"] == STEPS} == {config_of(STEPS)}


def test_another_version_is_named_and_several_never_come_unasked() -> None:
    assert ids("--metric", STEPS, "--metric-version", "1.0.0") == [("a", "1.0.0", 0.0)]
    refused = stepacc("export", "--source", SOURCE, "--metric", STEPS, "--metric-version", "2.0.0")
    assert refused.code == 1
    assert "several configs" in refused.complaint
    assert "config another-;" in refused.complaint
    assert ids("--metric", STEPS, "--config", "anoth") == [("a", "2.0.0", 0.0)]
    everything = exported("--all-versions", "--metric", STEPS)
    assert {found["metric_version"] for found in everything.rows} == {"1.0.0", "2.0.0"}
    assert "Several versions or configs are side by side" in everything.err
    assert stepacc("export", "--source", SOURCE, "--all-versions", "--config", "anoth").code == 2


def test_history_adds_what_is_no_longer_current() -> None:
    states = {
        (found["partition_id"], found["score"]): found["state"]
        for found in exported("--metric", STEPS, "--history").rows
    }
    assert states["a", 0.5] == "superseded"
    assert states["a", 0.1 + 0.2] == "current"
    assert len(states) == 8


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--from", TUESDAY), ["t"]),
        (("--to", MONDAY, "--type", "session"), ["s"]),
        (("--from", "2024-01-01", "--to", "2024-01-31"), []),
    ],
)
def test_windows_and_types_narrow_it(words: tuple[str, ...], expected: list[str]) -> None:
    assert [found[0] for found in ids("--metric", STEPS, *words)] == expected


def test_a_family_is_asked_for_as_a_whole_or_by_member() -> None:
    assert {found["metric"] for found in exported("--metric", FAMILY.name).rows} == set(FAMILY.family)
    assert {found["metric"] for found in exported("--metric", FAMILY.family[0]).rows} == {FAMILY.family[0]}
    version = exported("--metric", FAMILY.name, "--metric-version", FAMILY.version)
    assert {found["metric"] for found in version.rows} == set(FAMILY.family)


def test_parquet_is_typed_and_the_same_as_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_format, "GROUP_ROWS", 3)  # several row groups
    file = tmp_path / "scores.parquet"
    exported("--metric", STEPS, "--with-metadata", "-o", file)
    table = parquet.read_table(file)
    types = {"text": "string", "json": "string", "integer": "int64", "number": "double"}
    for column in (*COLUMNS, METADATA):
        found = table.schema.field(column.name)
        assert (str(found.type), found.nullable) == (
            types.get(column.kind, "timestamp[us, tz=UTC]"), not column.required
        )  # fmt: skip
        assert found.metadata[b"description"].decode() == column.about
    assert parquet.ParquetFile(file).num_row_groups == 3
    assert [_as_json(found) for found in table.to_pylist()] == [
        {**found, "metadata": _plain(found["metadata"])}
        for found in exported("--metric", STEPS, "--with-metadata").rows
    ]


def _as_json(found: dict[str, Any]) -> dict[str, Any]:
    """A row of Parquet as JSON lines have it."""
    told = {
        name: f"{value.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"
        if isinstance(value, datetime)
        else value
        for name, value in found.items()
    }
    if found["score"] is not None and math.isnan(found["score"]):
        told["score"] = "NaN"
    return {**told, "metadata": _plain(json.loads(found["metadata"]))}


def _plain(value: Any) -> Any:
    return value or None


def test_metadata_is_there_digit_by_digit() -> None:
    [found] = [found for found in exported("--metric", STEPS, "--with-metadata").rows if found["partition_id"] == "a"]
    assert found["metadata"] == METADATA_OF_A


def test_csv_gives_every_text_back_and_no_cell_is_a_formula(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    exported("--metric", STEPS, "--with-metadata", "-o", file)
    rows = list(csv.DictReader(io.StringIO(file.read_bytes().decode(), newline="")))
    lines = exported("--metric", STEPS, "--with-metadata").rows
    assert len(rows) == len(lines) > 0
    for cells, found in zip(rows, lines, strict=True):
        assert not [cell for cell in cells.values() if cell.lstrip()[:1] in {"=", "+", "-", "@"} and cell]
        for column in (*COLUMNS, METADATA):
            cell, value = cells[column.name], found[column.name]
            if column.kind == "text":
                assert cell.removeprefix("'") == (value or "")
            elif column.kind == "json":
                assert json.loads(cell) == value
            elif column.kind == "moment":
                assert cell == value
            else:
                assert cell == ("" if value is None else str(value))
    assert {cells["task_id"] for cells in rows} >= {f"'{FORMULA}"}
    assert "''quoted" in {cells["partition_id"] for cells in rows}


def test_moments_are_exact(shop: sa.Engine) -> None:
    with shop.connect() as conn:
        written = {found.id: found.evaluated_at for found in conn.execute(sa.select(scores))}
    for found in exported("--metric", STEPS).rows:
        assert datetime.fromisoformat(found["evaluated_at"]) - written[found["score_id"]] == timedelta()


def test_a_file_tells_its_format_and_json_tells_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "scores.ndjson"
    [told] = exported("--metric", STEPS, "--output", file, "--json").rows
    assert told == {
        "source": SOURCE,
        "file": str(file),
        "format": "jsonl",
        "bytes": file.stat().st_size,
        "rows": 7,
        "scores": [{"metric": STEPS, "metric_version": "2.0.0", "config_hash": config_of(STEPS), "rows": 7}],
    }
    assert len(file.read_text().splitlines()) == 7
    assert stat.S_IMODE(file.stat().st_mode) & 0o600 == 0o600
    nameless = stepacc("export", "--source", SOURCE, "-o", tmp_path / "scores.xlsx")
    assert (nameless.code, "scores.xlsx" in nameless.complaint) == (1, True)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "scores.parquet"
    file.write_text("before")

    def broken(*_: object, **_named: object) -> None:
        msg = "disk full"
        raise OSError(28, msg)

    monkeypatch.setattr(pa, "record_batch", broken)
    said = stepacc("export", "--source", SOURCE, "--metric", STEPS, "-o", file)
    assert said.code == 1
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [file.name]


def test_no_rows_make_a_file_of_columns_alone(tmp_path: Path) -> None:
    file = tmp_path / "scores.parquet"
    said = exported("--from", "2024-01-01", "--to", "2024-01-31", "-o", file)
    assert "there are no rows" in said.err
    assert (parquet.read_table(file).num_rows, parquet.read_table(file).column_names[:1]) == (0, ["source"])


@pytest.mark.parametrize(
    ("words", "code", "about"),
    [
        (("--metric", "agent.none"), 1, "is not scored by `agent.none`"),
        (("--metric-version", "9.9.9"), 1, "no scores by any metric, version 9.9.9"),
        (("--config", "abc"), 1, "at least 4 characters"),
        (("--from", "November"), 1, "write a window's key"),
        (("--json",), 2, "--json tells of a file"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(words: tuple[str, ...], code: int, about: str) -> None:
    said = stepacc("export", "--source", SOURCE, *words)
    assert (said.code, said.out) == (code, "")
    assert about in said.complaint


def test_a_source_that_is_not_configured_any_more_is_exported_by_name(tmp_path: Path) -> None:
    (tmp_path / "defs" / "shop" / "defs.yaml").unlink()
    assert ids("--metric", STEPS, "--metric-version", "1.0.0") == [("a", "1.0.0", 0.0)]


def test_a_reader_that_stops_ends_it_quietly() -> None:
    command = "import sys; sys.argv[0] = 'stepacc'; from stepacc_dagster.cli import main; main()"
    script = f'"$0" -c "{command}" export --source {SOURCE} --metric {STEPS} --metric-version 1.0.0 | true'
    said = stepacc_process(command=["bash", "-c", script, sys.executable])
    assert "Traceback" not in said.err


_MANY = """
    INSERT INTO stepacc.scores (source, partition_type, partition_id, window_key, metric, metric_version, config_hash,
                                status, score, steps_hash, evaluated_at, confirmed_at)
    SELECT 'many', 'trace', 'trace ' || n, :window, 'agent.step_accuracy', '2.0.0', 'c', 'scored', (n % 100) / 100.0,
           'x', now(), now()
    FROM generate_series(1, :count) n
"""
_PEAK = """
import resource, sys
from stepacc_dagster.cli import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(shop: sa.Engine, tmp_path: Path) -> None:
    peaks = {}
    with shop.begin() as conn:
        conn.execute(sa.text(_MANY), {"window": MONDAY, "count": 30_000})
        conn.execute(sa.text(_MANY.replace("'trace ' ||", "'other ' ||")), {"window": TUESDAY, "count": 100_000})
    for window, rows in ((MONDAY, 30_000), (TUESDAY, 100_000)):
        file = tmp_path / f"{window}.parquet"
        words = ["export", "--source", "many", "--all-versions", "--from", window, "--to", window, "-o", str(file)]
        said = stepacc_process(*words, command=[sys.executable, "-c", _PEAK])
        assert parquet.ParquetFile(file).metadata.num_rows == rows, said.err
        peaks[rows] = int(said.err.splitlines()[-1])
    assert peaks[100_000] < 1.2 * peaks[30_000]


def test_the_page_names_the_columns_as_they_are() -> None:
    kinds = {"moment": "timestamp", "json": "JSON text"}
    for column in (*COLUMNS, METADATA):
        line = f"| `{column.name}` | {kinds.get(column.kind, column.kind)} | {'no' if column.required else 'yes'} |"
        assert f"{line} {column.about} |" in PAGE
    table = PAGE.partition("## Columns")[2].partition("\n## ")[0]
    assert table.count("\n| `") == len(COLUMNS) + 1
