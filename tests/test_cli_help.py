"""What every command has: help, `--json`, and no need of what it does not use."""

import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from stepacc_core import registered_metrics
from stepacc_core._version import __version__
from stepacc_dagster.cli import main
from tests.cli_access import COMMAND, stepacc, stepacc_process


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


def named(words: Sequence[str]) -> tuple[click.Command, list[str]]:
    """The command that words name, and the words that are left over."""
    command: click.Command = main
    for place, word in enumerate(words):
        if not isinstance(command, click.Group):
            return command, [*words[place:]]
        found = command.get_command(click.Context(command), word)
        assert found is not None, word
        command = found
    return command, []


def examples(command: click.Command) -> list[list[str]]:
    """The words of the examples in a command's help, each without the program's name and what goes before it."""
    lines = [line.strip() for line in (command.help or "").splitlines()]
    found = [re.search(r"(?:^|\| )stepacc (.*)", line) for line in lines]
    return [shlex.split(re.split(r"  +| [|>]", match[1])[0]) for match in found if match]


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
    assert "exit code" in " ".join(said.out.lower().split())
    assert stepacc(*words, "-h").out == said.out
    command, _ = named(words)
    assert (command.help or "").partition("\n\n")[0].rstrip().endswith(".")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_the_help_of_every_command_has_examples_of_itself_with_options_that_there_are(words: tuple[str, ...]) -> None:
    command, _ = named(words)
    own = [example for example in examples(command) if named(example)[0] is command]
    assert own
    for example in own:
        given = {word.partition("=")[0] for word in named(example)[1] if word.startswith("-") and word != "-"}
        assert given <= {option for parameter in command.params for option in parameter.opts}, example


def test_an_error_is_a_sentence_and_with_debug_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPACC_HOME", str(tmp_path))
    said = stepacc_process("scores")
    assert said.code == 1
    assert said.err.count("\n") == 1
    said = stepacc_process("--debug", "scores")
    assert said.code == 1
    assert "Traceback (most recent call last)" in said.err
    *_, raised, sentence = said.err.splitlines()
    assert raised.startswith("stepacc_core.errors.ConfigError: ")
    assert sentence == f"Error: {raised.removeprefix('stepacc_core.errors.ConfigError: ')}"


def test_an_error_that_nobody_foresaw_is_a_sentence_too_with_an_exit_code_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        msg = "no such thing\npassword=hunter2hunter2"
        raise KeyError(msg)

    monkeypatch.setattr("stepacc_dagster.cli.manifest.registered_metrics", fails)
    said = stepacc("manifest")
    assert (said.code, said.out) == (3, "")
    assert said.complaint.startswith("This should not happen: KeyError: 'no such thing")
    assert "hunter2" not in said.err
    for word in ("`stepacc --debug ...`", "report it to the maintainers", __version__):
        assert word in said.complaint
    debugged = stepacc("--debug", "manifest")
    assert debugged.code == 3
    assert debugged.err.startswith("Traceback (most recent call last)")


def test_an_interrupt_and_a_reader_that_went_away_end_a_command_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    long = " ".join(map(shlex.quote, [*COMMAND, "manifest", "--json"]))
    for command in (long, f"{shlex.quote(sys.executable)} -m stepacc_core a b"):
        said = stepacc_process("-o", "pipefail", "-c", f"{command} | true", command=["bash"])
        assert (said.out, said.err) == ("", ""), command
    monkeypatch.setattr("stepacc_dagster.cli.manifest.registered_metrics", interrupted)
    said = stepacc("manifest")
    assert (said.code, said.out, said.err.strip()) == (1, "", "Aborted!")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    assert "_STEPACC_COMPLETE" in stepacc("completion", shell).out
    assert stepacc("completion", "csh").code == 2


def test_the_name_of_a_command_is_completed_without_loading_any(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_STEPACC_COMPLETE": "bash_complete", "COMP_WORDS": "stepacc sc", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    probe = (
        "import sys; from stepacc_dagster.cli import main\n"
        "try:\n    main(prog_name='stepacc')\n"
        "finally:\n    print(sorted(name for name in sys.modules if name.startswith('stepacc_dagster.cli.')))"
    )
    said = stepacc_process("-c", probe, command=[sys.executable])
    assert said.out == "plain,score\nplain,scores\n[]\n"


@pytest.mark.parametrize("group", ["annotations", "db", "import"])
def test_a_group_alone_shows_its_commands_as_wrong_use(group: str) -> None:
    said = stepacc(group)
    assert said.code == 2
    assert "Commands:" in said.err


def test_no_command_is_listed_with_half_a_sentence() -> None:
    for words in {command[:length] for command in ALL for length in range(len(command))}:
        listed = stepacc(*words, "--help").out.partition("Commands:")[2]
        assert listed, words
        assert "..." not in listed, words


def test_an_unknown_command_or_option_is_a_wrong_use() -> None:
    assert (stepacc("evaluate").code, stepacc("steps", "--loud", "x").code) == (2, 2)
    assert "'evaluate'" in stepacc("evaluate").complaint


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("scors",), "`scores`"),
        (("anotations", "list"), "`annotations`"),
        (("annotations", "lst"), "list"),
        (("manifest", "--jsn"), "--json"),
        (("gate", "--min-men", "1"), "--min-mean"),
    ],
)
def test_a_slip_of_the_pen_is_told_what_it_may_have_meant(words: tuple[str, ...], meant: str) -> None:
    said = stepacc(*words)
    assert said.code == 2
    assert re.search(f"[Dd]id you mean .*{meant}", said.complaint)


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
