"""What to say where nothing that was asked for is scored: what is stored, and the command that scores the rest."""

import sqlalchemy as sa

from stepacc_core.comparison.choosing import Wanted
from stepacc_core.comparison.observations import Selection
from stepacc_core.comparison.stored import not_stored
from stepacc_dagster.gating import as_stored, installed_versions
from stepacc_dagster.storage.paired import groups, known_sources


def unscored(conn: sa.Connection, wanted: Wanted) -> str | None:
    """Say which metrics, versions or configs are stored in place of what is asked for, and how to score by that.

    Returns:
        Sentences; None where what is asked for is stored, in other windows.
    """
    wanted = as_stored(wanted)
    stored = groups(conn, Wanted(wanted.source))
    said = not_stored(wanted, stored)
    if said is None:
        return None
    if not stored:
        others = ", ".join(f"`{name}`" for name in known_sources(conn))
        told = f"Sources with traces are {others}. " if others else ""
        return f"{said} {told}Score it: `stepacc backfill --source {wanted.source}`."
    return f"{said} {_way_out(wanted, {group.metric for group in stored})}"


def unscored_windows(selection: Selection) -> str:
    """Say that a selection holds nothing, and which command scores its windows."""
    asked = [f"--{name} {key}" for name, key in zip(("from", "to"), selection.bounds, strict=True) if key]
    return (
        f"Nothing is scored in {selection}, though something is in other windows or of another type: `stepacc backfill "
        f"{' '.join((f'--source {selection.source}', *asked))}` scores these."
    )


def _way_out(wanted: Wanted, stored: set[str]) -> str:
    """Return how to score by what is wanted, where rows of these names are stored."""
    metrics = {installed_versions(row) for row in ({wanted.metric} if wanted.metric else stored)}
    name, versions = metrics.pop() if len(metrics) == 1 else (None, ())
    if wanted.metric and not versions:
        return "No metric of that name is installed either; name one that is stored, with --metric."
    if wanted.metric_version and versions and wanted.metric_version not in versions:
        return f"No such version is installed either; there are {', '.join(versions)}."
    command = f"`stepacc backfill --source {wanted.source}{f' --metric {name}' if name else ''}`"
    if wanted.metric_version and not wanted.config_hash and wanted.metric in {None, *stored}:
        setting = f"`metric_version: {wanted.metric_version}`"
        return (
            f"Put {setting} under `attributes` in {_settings_of(wanted.source)}, run {command}, and take it out again; "
            "what is stored stays."
        )
    return f"Once {_settings_of(wanted.source)} has it, {command} scores by it; what is stored stays."


def _settings_of(source: str) -> str:
    """Return what to call the file with a source's settings: its path, where it is one of this machine."""
    from stepacc_dagster.local.home import local_defs_folder  # noqa: PLC0415 (it needs fcntl, which Windows lacks)

    path = local_defs_folder() / source / "defs.yaml"
    return str(path) if path.is_file() else "the source's defs.yaml"
