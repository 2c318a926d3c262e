"""The local code location: every source that has a `defs.yaml` in the local folder.

`workspace.yaml` loads this module. The folder is `STEPACC_DEFS`, else `defs` in the local home (`STEPACC_HOME`). A
Dagster project of your own loads the component by itself and has no need of this module; of its files the commands read
`type` and `attributes`, and leave what else Dagster does with them to it.
"""

import logging
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import yaml
from dagster.components.core.component_tree import ComponentTree
from dagster.components.resolved.errors import ResolutionException
from dagster_shared.yaml_utils import parse_yamls_with_source_position
from dagster_shared.yaml_utils.source_position import ValueAndSourcePositionTree
from pydantic import ValidationError

from stepacc_core.errors import ConfigError, StepaccError
from stepacc_dagster.component import StepAccuracyComponent, build_evaluation_definitions
from stepacc_dagster.defs_errors import located
from stepacc_dagster.local.executor import noted_in_process_executor
from stepacc_dagster.local.home import local_defs_folder
from stepacc_dagster.sources import Source

_LOGGER = logging.getLogger("stepacc")
_NAME = re.compile(r"""^\s+source:\s*["']?([^\s"'#]+)""", re.MULTILINE)
_TYPES = ("stepacc_dagster.StepAccuracyComponent", "stepacc_dagster.component.StepAccuracyComponent")


def defs_folder() -> Path:
    """Return the folder in which each source has a folder with its `defs.yaml`."""
    return local_defs_folder()


@dataclass(frozen=True, slots=True)
class Refused:
    """A `defs.yaml` that gives no source.

    Attributes:
        error: why; its sentence names file and field.
        names: what somebody may call it by: the name of its folder, and that of the source it speaks of.
    """

    error: StepaccError
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class LocalSources:
    """The sources of a folder, in the order of their files, and the files that give none."""

    sources: tuple[Source, ...]
    refused: tuple[Refused, ...] = ()

    def named(self, name: str) -> Source | None:
        """Return the source of a name; None where no file is of that name.

        Raises:
            StepaccError: a file of that name is refused.
        """
        for refused in self.refused:
            if name in refused.names:
                raise refused.error
        return next((source for source in self.sources if source.name == name), None)


def read_sources(folder: Path) -> LocalSources:
    """Load the source of every `defs.yaml` below a folder; one that is refused keeps no other from being loaded."""
    sources: dict[str, Source] = {}
    refused: list[Refused] = []
    for path in source_files(folder):
        try:
            source = load_source(path)
            if source.name in sources:
                msg = f"{path}: source `{source.name}` has a defs.yaml already; give each source a name of its own."
                raise ConfigError(msg)
        except StepaccError as error:
            refused.append(Refused(error, _names(path)))
        else:
            sources[source.name] = source
    return LocalSources(tuple(sources.values()), tuple(refused))


def load_sources(folder: Path) -> list[Source]:
    """Load the source of every `defs.yaml` below a folder, in the order of their paths.

    Raises:
        ConfigError: a file is no component of a source, a setting is refused, or two files have one source; the
            sentence names file and field.
    """
    found = read_sources(folder)
    for refused in found.refused:
        raise refused.error
    return list(found.sources)


def source_files(folder: Path) -> list[Path]:
    """Return every `defs.yaml` below a folder, in order."""
    return sorted(folder.glob("**/defs.yaml"))


@dg.definitions
def defs() -> dg.Definitions:
    """Build the definitions of all local sources; those of a file that is refused are left out, and logged.

    Raises:
        ConfigError: a file is refused, and no other gives a source.
    """
    found = read_sources(defs_folder())
    for refused in found.refused:
        if not found.sources:
            raise refused.error
        _LOGGER.error(
            "%s Its source is left out until the file is mended and the definitions are reloaded.", refused.error
        )
    return dg.Definitions.merge(local_settings(), *(build_evaluation_definitions(source) for source in found.sources))


def local_settings() -> dg.Definitions:
    """Return the executor and the loggers of local runs, which a component must leave to its project.

    A run has one step after another, so a process for each would only cost its start. A run that a command started
    names the silent logger, and can be executed again from the UI.
    """
    silent = dg.LoggerDefinition(_no_output, description="Prints nothing; Dagster keeps its events in any case.")
    loggers = {"console": dg.colored_console_logger, "silent": silent}
    return dg.Definitions(executor=noted_in_process_executor, loggers=loggers)


def _no_output(_context: dg.InitLoggerContext) -> logging.Logger:
    logger = logging.Logger("stepacc.silent")  # noqa: LOG001 (a shared one may get handlers from elsewhere)
    logger.addHandler(logging.NullHandler())
    return logger


def load_source(path: Path) -> Source:
    """Load the source of one `defs.yaml`.

    Raises:
        ConfigError: it is no component of a source, or a setting is refused; the sentence names file and field.
    """
    document = _read(path)
    attributes = document.value.get("attributes") or {}
    context = ComponentTree.for_test().load_context.with_source_position_tree(document.source_position_tree)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=dg.BetaWarning)
            warnings.simplefilter("ignore", category=dg.PreviewWarning)
            component = StepAccuracyComponent.from_attributes_dict(attributes=attributes, context=context)
    except (ValidationError, ResolutionException) as error:
        raise located(error, document.source_position_tree) from None
    return component.to_source()


def _names(path: Path) -> frozenset[str]:
    """Return what somebody may call the source of a file by, be it YAML or not."""
    try:
        said = _NAME.findall(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        said = []
    return frozenset({path.parent.name, *said})


def _read(path: Path) -> ValueAndSourcePositionTree:
    try:
        documents = parse_yamls_with_source_position(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{path} cannot be read as YAML: {' '.join(str(error).split()).rstrip('.')}."
        raise ConfigError(msg) from None
    if len(documents) > 1:
        msg = f"{path} has {len(documents)} documents; give each source a defs.yaml of its own."
        raise ConfigError(msg)
    value = documents[0].value if documents else None
    if not isinstance(value, dict) or value.get("type") not in _TYPES:
        msg = f"{path} is no source: write `type: {_TYPES[0]}` and its `attributes`."
        raise ConfigError(msg)
    return documents[0]
