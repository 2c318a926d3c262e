"""Facts about the installation. Nothing of Dagster or SQLAlchemy is imported before it is known to be there."""

import os
import platform
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from stepacc_core._version import __version__
from stepacc_dagster.doctor.installation import Installation, Variable

_PACKAGES = ("dagster", "dagster-postgres", "dagster-webserver", "sqlalchemy", "alembic", "psycopg")
_MODULES = ("sqlalchemy", "alembic", "psycopg", "psycopg2", "dagster", "dagster_postgres")


def gather_installation() -> Installation:
    """Look at what is installed; this imports Dagster, which takes seconds."""
    unimportable = {name: reason for name in _MODULES if (reason := _refusal(name))}
    return Installation(
        stepacc=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        packages={name: found for name in _PACKAGES if (found := _version(name))},
        unimportable=unimportable,
        variables=() if unimportable else tuple(_variables()),
    )


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _refusal(module: str) -> str | None:
    try:
        import_module(module)
    except Exception as error:  # noqa: BLE001 (a package may fail in any way, and none may end the examination)
        return " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return None


def _variables() -> Iterator[Variable]:
    from sqlalchemy.engine import make_url  # noqa: PLC0415 (may be missing)

    from stepacc_dagster.database import (  # noqa: PLC0415 (as above)
        DAGSTER_URL_VARIABLE,
        URL_VARIABLE,
        dagster_storage_url,
        database_url,
    )
    from stepacc_dagster.errors import DatabaseUrlError  # noqa: PLC0415 (as above)
    from stepacc_dagster.failures import address  # noqa: PLC0415 (as above)

    readers: dict[str, Callable[[], str | None]] = {
        URL_VARIABLE: database_url,
        DAGSTER_URL_VARIABLE: lambda: dagster_storage_url(""),
    }
    for name, read in readers.items():
        if not os.environ.get(name):
            continue
        try:
            yield Variable(name, address=address(make_url(read() or "")))
        except DatabaseUrlError as error:
            yield Variable(name, problem=str(error))
