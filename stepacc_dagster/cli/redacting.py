"""What redacts at the doors of the commands: by the settings of a source where it is configured, else by defaults."""

import os
from collections.abc import Mapping
from pathlib import Path

import sqlalchemy as sa

from stepacc_core.redaction import RedactionSettings, Redactor
from stepacc_dagster.cli.output import note
from stepacc_dagster.redaction.doors import RedactorOf, door_redactor
from stepacc_dagster.redaction.forms import redacted_forms


def redaction_of(source: str) -> RedactionSettings:
    """Return how a source's values are redacted; one that is not configured here has the defaults, by which all is.

    Raises:
        ConfigError: the `defs.yaml` of the source is wrong, so that what it says of redaction is not known; or there is
            none that gives it, and a wrong one that may.
    """
    folder = _defs_folder()
    if folder is None or not any(map(_speaks_of_redaction, folder.glob("**/defs.yaml"))):
        return RedactionSettings()
    from stepacc_dagster.definitions import read_sources  # noqa: PLC0415 (loads Dagster, seconds of waiting)

    sources = read_sources(folder)
    if found := sources.named(source):
        return found.redaction
    for refused in sources.refused:
        raise refused.error
    return RedactionSettings()


def source_redactor(engine: sa.Engine, source: str) -> Redactor | None:
    """Return what redacts the values of a source; None, and a note, where its settings say to store them as they are.

    Raises:
        ConfigError: as `redaction_of`.
        RedactionKeyError: there is no key, or it is not the one of the database.
    """
    redactor = door_redactor(engine, redaction_of(source))
    if redactor is None:
        note(f"Values of source `{source}` are stored as they are: its settings switch redaction off.")
    return redactor


def redactors(engine: sa.Engine) -> RedactorOf:
    """Return what gives the redactor of each source, made when it is first asked for."""
    made: dict[str, Redactor | None] = {}

    def of(source: str) -> Redactor | None:
        if source not in made:
            made[source] = source_redactor(engine, source)
        return made[source]

    return of


def stored_forms(engine: sa.Engine, ident: str, source: str | None) -> tuple[str, ...]:
    """Return the forms in which the id of a session or task may be stored: as redaction leaves it, then as it is."""
    settings = RedactionSettings() if source is None else redaction_of(source)
    return (*redacted_forms(engine, ident, [settings]), ident)


def told(redacted: Mapping[str, int]) -> str:
    """Say how many values were redacted, as `, redacted: 2 email, 1 jwt`; nothing where there were none."""
    return f", redacted: {', '.join(f'{count} {kind}' for kind, count in redacted.items())}" if redacted else ""


def _defs_folder() -> Path | None:
    if given := os.environ.get("STEPACC_DEFS"):
        return Path(given)
    if os.name == "nt":  # which has no local home
        return None
    from stepacc_dagster.local.home import local_defs_folder  # noqa: PLC0415 (it needs fcntl, which Windows lacks)

    return local_defs_folder()


def _speaks_of_redaction(path: Path) -> bool:
    return b"redaction" in path.read_bytes()
