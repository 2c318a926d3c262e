"""The local Dagster instance: its folder, its settings and its tables in the database of stepacc."""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import dagster as dg

from stepacc_dagster.database import (
    DAGSTER_URL_VARIABLE,
    URL_VARIABLE,
    connect_engine,
    create_dagster_schema,
    dagster_storage_url,
    normalise_url,
)
from stepacc_dagster.local.home import locked, make_home
from stepacc_dagster.local.redaction_key import key_for_children

_MARK = "# stepacc "


def dagster_home(home: Path) -> Path:
    """Return the folder of the local Dagster instance (`DAGSTER_HOME`).

    Args:
        home: the folder of stepacc.
    """
    return home.absolute() / "dagster"


def instance_environment(home: Path, url: str) -> dict[str, str]:
    """Return the variables by which a child process finds the local instance and the database.

    Args:
        home: the folder of stepacc.
        url: the database of stepacc.

    Returns:
        Variables to add to the child's environment; their values hold the database's password, and of the private
        server the redaction key.

    Raises:
        DatabaseUrlError: the URL is of no use.
        RedactionKeyError: the file of the key is of no use.
    """
    return {
        **key_for_children(),
        "DAGSTER_HOME": str(dagster_home(home)),
        URL_VARIABLE: normalise_url(url),
        DAGSTER_URL_VARIABLE: dagster_storage_url(url),
    }


@contextmanager
def local_instance(home: Path, url: str) -> Iterator[dg.DagsterInstance]:
    """Open the local instance in this process; set its variables for as long as it is open.

    Compute logs and files of runs lie in the instance's folder. Its tables are created where they
    are missing, in the schema `dagster` unless `STEPACC_DAGSTER_DATABASE_URL` says otherwise.

    Args:
        home: the folder of stepacc.
        url: the database of stepacc.

    Yields:
        The instance.

    Raises:
        DatabaseError: the database cannot be used.
    """
    folder = dagster_home(home)
    make_home(folder)
    environment = instance_environment(home, url)
    with locked(folder / "dagster.lock"):  # one process at a time creates what is missing
        _write_settings(folder / "dagster.yaml")
        if DAGSTER_URL_VARIABLE not in os.environ:
            _create_schema(url)
        before = _set(environment)
        try:
            instance = dg.DagsterInstance.from_config(str(folder))
        except BaseException:
            _restore(before)
            raise
    try:
        with instance:
            yield instance
    finally:
        _restore(before)


def _create_schema(url: str) -> None:
    engine = connect_engine(url)
    try:
        create_dagster_schema(engine)
    finally:
        engine.dispose()


def _set(environment: Mapping[str, str]) -> dict[str, str | None]:
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    return before


def _restore(before: Mapping[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _write_settings(path: Path) -> None:
    """Write `dagster.yaml` unless somebody changed what was written before."""
    if path.exists():
        first, _, rest = path.read_text().partition("\n")
        if first != _mark(rest):
            return
    body = resources.files("stepacc_dagster.local").joinpath("dagster.yaml").read_text()
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix="dagster.yaml.", delete=False) as scratch:
        scratch.write(f"{_mark(body)}\n{body}")
    Path(scratch.name).replace(path)


def _mark(body: str) -> str:
    """The first line of the file, which tells whether the rest is still as written."""
    return f"{_MARK}{hashlib.sha256(body.encode()).hexdigest()[:16]}"
