"""Projects by name: which of a store's are read."""

from collections.abc import Iterable

from stepacc_dagster.stores.errors import UnknownProjectError

_SHOWN = 20
"""Names that an error lists."""


def named_projects(store: str, term: str, wanted: tuple[str, ...], known: Iterable[tuple[str, int]]) -> list[int]:
    """Return the ids of the projects of these names, or of all where no name is given.

    Args:
        store: name of the product, for the error.
        term: what it calls a project.
        wanted: names that the settings give.
        known: name and id of each project; a name may occur more than once.

    Raises:
        UnknownProjectError: a name is not known.
    """
    pairs = list(known)
    names = sorted({name for name, _ in pairs})
    missing = [name for name in wanted if name not in names]
    if missing:
        shown = ", ".join(names[:_SHOWN]) + (" and more" if len(names) > _SHOWN else "")
        msg = (
            f"{store} has no {term} {' and no '.join(map(repr, missing))}; it has {shown or 'none yet'}. Correct the "
            f"{term}s in the settings of the store, or leave them out to read all."
        )
        raise UnknownProjectError(msg)
    return sorted(ident for name, ident in pairs if not wanted or name in wanted)
