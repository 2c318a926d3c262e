"""The local code location: every source that has a `defs.yaml` in the local folder.

`workspace.yaml` loads this module. The folder is `STEPACC_DEFS`, else `defs` in the local home (`STEPACC_HOME`). A
Dagster project of your own loads the component by itself and has no need of this module.
"""

import logging
import os
import re
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from dagster.components.resolved.errors import ResolutionException
from pydantic import ValidationError

from stepacc_core.errors import ConfigError, StepaccError
from stepacc_dagster.component import StepAccuracyComponent, build_evaluation_definitions
from stepacc_dagster.local.home import local_home
from stepacc_dagster.sources import Source, evaluator_of

_FIELD = re.compile(r"(?!(str|int|float)$)[a-z_]+|\d+")
"""A field's name or an index; the other parts of a place in pydantic's errors name types."""
_TYPES = ("stepacc_dagster.StepAccuracyComponent", "stepacc_dagster.component.StepAccuracyComponent")


def defs_folder() -> Path:
    """Return the folder in which each source has a folder with its `defs.yaml`."""
    return Path(os.environ.get("STEPACC_DEFS") or local_home() / "defs")


def load_sources(folder: Path) -> list[Source]:
    """Load the source of every `defs.yaml` below a folder, in the order of their paths.

    Raises:
        ConfigError: a file is no component of a source, a setting is refused, or two files have one source; the
            sentence names file and field.
    """
    sources: dict[str, Source] = {}
    for path in sorted(folder.glob("**/defs.yaml")):
        source = _load(path)
        if source.name in sources:
            msg = f"{path}: source `{source.name}` has a defs.yaml already; give each source a name of its own."
            raise ConfigError(msg)
        sources[source.name] = source
    return list(sources.values())


@dg.definitions
def defs() -> dg.Definitions:
    """Build the definitions of all local sources."""
    return dg.Definitions.merge(
        local_settings(), *(build_evaluation_definitions(source) for source in load_sources(defs_folder()))
    )


def local_settings() -> dg.Definitions:
    """Return the executor and the loggers of local runs, which a component must leave to its project.

    A run has one step after another, so a process for each would only cost its start. A run that a command started
    names the silent logger, and can be executed again from the UI.
    """
    silent = dg.LoggerDefinition(_no_output, description="Prints nothing; Dagster keeps its events in any case.")
    loggers = {"console": dg.colored_console_logger, "silent": silent}
    return dg.Definitions(executor=dg.in_process_executor, loggers=loggers)


def _no_output(_context: dg.InitLoggerContext) -> logging.Logger:
    logger = logging.Logger("stepacc.silent")  # noqa: LOG001 (a shared one may get handlers from elsewhere)
    logger.addHandler(logging.NullHandler())
    return logger


def _load(path: Path) -> Source:
    document = _read(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=dg.BetaWarning)
            warnings.simplefilter("ignore", category=dg.PreviewWarning)
            component = StepAccuracyComponent.from_attributes_dict(attributes=_attributes(document))
    except (ValidationError, ResolutionException) as error:
        msg = f"{path}, {_told(error)}."
        raise ConfigError(msg) from None
    try:
        source = component.to_source()
        evaluator_of(source)
    except StepaccError as error:
        msg = f"{path}: {error}"
        raise ConfigError(msg) from None
    return source


def _attributes(document: dict[str, Any]) -> Any:
    attributes = document.get("attributes") or {}
    if isinstance(attributes, dict) and isinstance(start := attributes.get("start_date"), date):
        return {**attributes, "start_date": start.isoformat()}  # YAML makes a date of one without quotes
    return attributes


def _told(error: Exception) -> str:
    invalid = error.__context__ if isinstance(error, ResolutionException) else error
    if not isinstance(invalid, ValidationError):
        return " ".join(str(error).split()).rstrip(".")
    telling = max(invalid.errors(), key=lambda part: len(part["loc"]))  # the alternative that fits furthest
    field = ".".join(part for part in map(str, telling["loc"]) if _FIELD.fullmatch(part)) or "attributes"
    return f"attribute `{field}`: {telling['msg']}; given {telling['input']!r}"


def _read(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{path} cannot be read as YAML: {' '.join(str(error).split()).rstrip('.')}."
        raise ConfigError(msg) from None
    if not isinstance(document, dict) or document.get("type") not in _TYPES:
        msg = f"{path} is no source: write `type: {_TYPES[0]}` and its `attributes`."
        raise ConfigError(msg)
    return document
