"""The options that say how traces in files are read, as a source's settings do for traces in the database."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from stepacc_core.conventions.declared import DeclaredMapping
from stepacc_core.errors import ConfigError
from stepacc_core.mapping_files import parse_mappings
from stepacc_core.policy import StepPolicy
from stepacc_core.reading import TASK_ID_ATTRIBUTES, ReadSettings

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


mapping_option = click.option(
    "--mapping",
    "mapping_files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="YAML file that declares a convention of your own; docs/reading.md shows one.",
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How spans are read, and what of them is no step."""

    settings: ReadSettings
    policy: StepPolicy


def reading_options(command: CommandT) -> Callable[..., Any]:
    """Add the options to a command, which gets what they say as `reading`."""

    @click.option(
        "--task-id-attribute", multiple=True, help="An attribute that holds the task id, beside the built-in ones."
    )
    @mapping_option
    @click.option(
        "--entry-agent",
        type=click.Choice(["step", "root"]),
        default="step",
        show_default=True,
        help="Whether the agent that takes the request is a step when its span lies below the root.",
    )
    @click.option(
        "--handoffs",
        type=click.Choice(["both", "tool", "agent", "none"]),
        default="both",
        show_default=True,
        help="What counts of a tool call that hands over to an agent.",
    )
    @click.option("--ignore", multiple=True, metavar="NAME", help="A tool or agent that is never a step.")
    @wraps(command)
    def with_reading(
        *args: Any,
        task_id_attribute: tuple[str, ...],
        mapping_files: tuple[Path, ...],
        entry_agent: Any,
        handoffs: Any,
        ignore: tuple[str, ...],
        **options: Any,
    ) -> Any:
        mappings = read_mappings(mapping_files)
        settings = ReadSettings(task_id_attributes=(*TASK_ID_ATTRIBUTES, *task_id_attribute), mappings=mappings)
        return command(*args, reading=Reading(settings, StepPolicy(entry_agent, handoffs, ignore)), **options)

    return with_reading


def read_mappings(paths: Iterable[Path]) -> tuple[DeclaredMapping, ...]:
    """Read files of declared mappings.

    Raises:
        ConfigError: a file is no UTF-8, or no list of mappings; the sentence names file, mapping and field.
    """
    return tuple(mapping for path in paths for mapping in parse_mappings(_text(path), name=str(path)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"`{path}` is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8."
        raise ConfigError(msg) from None
