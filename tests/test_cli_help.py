"""What every command has: help, `--json`, and no need of what it does not use."""

import json
import sys
from collections.abc import Iterator

import click
import pytest

from stepacc_core import registered_metrics
from stepacc_dagster.cli import main
from tests.cli_access import stepacc, stepacc_process


def commands() -> Iterator[tuple[str, ...]]:
    """The words of every command, groups left out."""

    def below(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                found = command.get_command(click.Context(command), name)
                assert found is not None
                yield from below(found, (*words, name))
        else:
            yield words

    return below(main, ())


ALL = list(commands())


def test_these_commands_are_there() -> None:
    assert {" ".join(words) for words in ALL} >= {
        "annotations check",
        "annotations import",
        "annotations list",
        "annotations withdraw",
        "collect",
        "db upgrade",
        "demo",
        "dev",
        "import traces",
        "ingest",
        "manifest",
        "materialize",
        "score",
        "steps",
    }


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_has_json_and_explains_itself_and_its_options(words: tuple[str, ...]) -> None:
    said = stepacc(*words, "--help")
    assert said.code == 0
    assert "--json" in said.out
    assert "\\b" not in said.out
    assert stepacc(*words, "-h").out == said.out
    command: click.Command = main
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    assert (command.help or "").rstrip().endswith(".")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


@pytest.mark.parametrize("group", ["annotations", "db", "import"])
def test_a_group_alone_shows_its_commands_as_wrong_use(group: str) -> None:
    said = stepacc(group)
    assert said.code == 2
    assert "Commands:" in said.err


def test_an_unknown_command_or_option_is_a_wrong_use() -> None:
    assert (stepacc("evaluate").code, stepacc("steps", "--loud", "x").code) == (2, 2)
    assert "'evaluate'" in stepacc("evaluate").complaint


def test_help_and_files_need_no_dagster() -> None:
    """So that they start at once, and work in a base install."""
    probe = (
        "import sys; from click.testing import CliRunner; from stepacc_dagster.cli import main\n"
        "for words in ([], ['--version'], ['steps', '-h'], ['score', '-h'], ['manifest', '--json']):\n"
        "    assert CliRunner().invoke(main, words).exit_code in (0, 2)\n"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'dagster', 'sqlalchemy', 'psycopg'}))"
    )
    said = stepacc_process("-c", probe, command=[sys.executable])
    assert (said.code, said.out, said.err) == (0, "[]\n", "")


def test_manifest_lists_all_metrics_and_shows_one() -> None:
    listed = json.loads(stepacc("manifest", "--json").out)
    assert {(entry["name"], entry["version"]) for entry in listed} == {
        (metric.manifest.name, metric.manifest.version) for metric in registered_metrics()
    }
    [row] = stepacc("manifest", "agent.step_accuracy", "--json").rows
    assert row["version"] == "2.0.0"
    assert row in listed
    [row] = stepacc("manifest", "agent.step_accuracy", "--metric-version", "1.0.0", "--json").rows
    assert row["version"] == "1.0.0"


def test_manifest_is_yaml_for_people() -> None:
    said = stepacc("manifest", "agent.step_accuracy")
    assert "max_concurrency: 4\n" in said.out
    assert "agent.step_accuracy" in stepacc("manifest").out


@pytest.mark.parametrize(
    "arguments", [["agent.charm"], ["agent.step_accuracy", "--metric-version", "9"], ["--metric-version", "1.0.0"]]
)
def test_manifest_refuses_what_is_not_registered(arguments: list[str]) -> None:
    said = stepacc("manifest", *arguments)
    assert (said.code, said.out) == (2, "")
    assert said.complaint.endswith(".")
