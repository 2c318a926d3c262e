"""The source that a command is about, among those with a `defs.yaml`."""

from stepacc_core.errors import ConfigError
from stepacc_dagster.definitions import defs_folder, read_sources
from stepacc_dagster.sources import Source


def local_source(name: str | None) -> Source:
    """Return the source of that name, or the only one there is.

    Raises:
        ConfigError: there is none, or there are several and none was named, or its file is refused. A file of another
            that is refused is in nobody's way.
    """
    found = read_sources(defs_folder())
    if name is None and len(found.sources) + len(found.refused) == 1:
        for refused in found.refused:
            raise refused.error
        return found.sources[0]
    if name is not None and (source := found.named(name)):
        return source
    known = ", ".join(f"`{source.name}`" for source in found.sources) or "none"
    asked = f"There is no source `{name}`" if name else "Name a source with --source"
    msg = f"{asked}; configured in {defs_folder()} are: {known}. A source has a folder there with its defs.yaml."
    raise ConfigError(" ".join([msg, *(f"Not loaded: {refused.error}" for refused in found.refused)]))
