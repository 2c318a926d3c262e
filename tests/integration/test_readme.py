"""The README is run: its code, its SQL, its files, its commands and the output it shows."""

import re
import shlex
import textwrap
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from stepacc_core.annotation_files import parse_annotations
from stepacc_core.picture import picture
from stepacc_dagster.cli import main
from stepacc_dagster.definitions import load_sources
from stepacc_dagster.demo.run import run_demo

README = (Path(__file__).parents[2] / "README.md").read_text()
BLOCKS = [
    (language, textwrap.dedent(text))
    for language, text in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", README, flags=re.MULTILINE | re.DOTALL)
]


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return [text for name, text in BLOCKS if name == language]


def commands() -> list[list[str]]:
    """Every `stepacc` command line, split into words, without its comment."""
    lines = [line for text in blocks("sh") for line in text.splitlines() if line.startswith("stepacc ")]
    return [shlex.split(line, comments=True)[1:] for line in lines]


def test_the_python_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks("python")[0], "README.md", "exec"), {})  # noqa: S102 (our own README)

    assert capsys.readouterr().out == "0.667\n"


def test_the_definitions_example_builds_the_assets_it_lists() -> None:
    namespace: dict[str, Any] = {"my_definitions": dg.Definitions()}
    exec(compile(blocks("python")[1], "README.md", "exec"), namespace)  # noqa: S102 (our own README)

    keys = {spec.key.path[-1] for spec in namespace["defs"].resolve_all_asset_specs()}

    assert {key for key in keys if f"`{key}`" not in README} == set()
    assert len(keys) == 6


def test_the_annotations_example_is_taken() -> None:
    (annotation,) = parse_annotations(blocks("yaml")[0], "yaml", name="README.md")

    assert annotation.value == ["lookup_order", ["fetch_policy", "fetch_history"], "issue_refund"]


def test_the_defs_example_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "defs.yaml").write_text(blocks("yaml")[1])

    (source,) = load_sources(tmp_path)

    assert source.name == "support_agent"
    assert source.partition_types == {"trace": "fail", "session": "skip"}


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_exists_with_the_options_shown(words: list[str]) -> None:
    runner = CliRunner()
    path = [word for word in words if not word.startswith("-")]
    help_texts = [runner.invoke(main, [*path[:depth], "--help"]) for depth in (2, 1)]
    shown = next(result.output for result in help_texts if result.exit_code == 0 and "Usage" in result.output)

    assert [word for word in words if word.startswith("--") and word not in shown] == []


def test_the_demo_gives_the_picture_and_the_query_gives_the_scores(
    migrated_url: str, migrated_engine: sa.Engine, open_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPACC_HOME", str(open_home))
    monkeypatch.setenv("STEPACC_DATABASE_URL", migrated_url)

    outcome = run_demo(migrated_url, lambda _: None)
    with migrated_engine.connect() as connection:
        rows = connection.execute(sa.text(blocks("sql")[0])).all()

    shown = [score for score in outcome.scores if score.partition_id in README]
    assert [str(picture(score.metadata)) in README for score in shown] == [True]
    assert len(rows) == len(outcome.scores) == 18
    assert {row.author for row in rows if row.score is not None} == {"qa@example.org"}
    assert {row.why for row in rows} == {None, "content_not_recorded"}
