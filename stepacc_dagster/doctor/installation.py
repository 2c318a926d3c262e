"""Checks of the installation: Python, the packages that have to fit together, and the environment variables."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from stepacc_dagster.doctor.findings import Finding

_PIP = "pip install 'stepacc[dagster,embedded]'"
_NEEDED = ("dagster", "dagster-postgres", "sqlalchemy", "alembic", "psycopg")
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_SHIFT = 16
"""dagster 1.13.27 is released with the libraries 0.29.27: their major is one less, their minor 16 more."""


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable that holds a database URL.

    Attributes:
        name: the variable.
        address: host, port and database it names; None where it is not set, or its value is of no use.
        problem: why its value is of no use.
    """

    name: str
    address: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Installation:
    """What is installed.

    Attributes:
        stepacc: version.
        python: version.
        system: name and version of the system.
        packages: version by distribution, those that are not installed left out.
        unimportable: why a module that is needed cannot be imported, by its name.
        variables: those that may hold a database URL.
    """

    stepacc: str
    python: str
    system: str
    packages: Mapping[str, str]
    unimportable: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()


def check_installation(found: Installation) -> Iterator[Finding]:
    """Say what is installed, and what of it does not fit."""
    yield Finding("ok", f"stepacc {found.stepacc} on Python {found.python}, {found.system}.")
    if missing := [name for name in _NEEDED if name not in found.packages]:
        yield Finding(
            "error", f"Not installed: {', '.join(missing)}.", f"Run {_PIP}; without, only files can be worked on."
        )
        return
    yield from _dagster(found.packages)
    for name, reason in found.unimportable.items():
        yield Finding(
            "error",
            f"The module {name} cannot be imported: {reason}.",
            f"Install it anew, in versions that fit together: {_PIP}, from a checkout with -c constraints.txt.",
        )
    if not found.unimportable:
        yield Finding("ok", "The drivers of both are there: psycopg for stepacc, psycopg2 for Dagster.")
    for variable in found.variables:
        if variable.problem:
            yield Finding(
                "error", variable.problem, f"Correct the environment variable {variable.name}, or leave it unset."
            )
        elif variable.address:
            yield Finding("ok", f"{variable.name} names the database {variable.address}.")


def library_version(dagster: str) -> str | None:
    """Return the version of Dagster's libraries that belongs to a version of dagster; None for one without a rule."""
    release = _RELEASE.fullmatch(dagster)
    if release is None or release[1] != "1":
        return None
    return f"0.{int(release[2]) + _SHIFT}.{release[3]}"


def _dagster(packages: Mapping[str, str]) -> Iterator[Finding]:
    dagster, postgres = packages["dagster"], packages["dagster-postgres"]
    expected = library_version(dagster)
    if expected is None:
        yield Finding(
            "note",
            f"dagster {dagster} is no release that stepacc knows; dagster-postgres is {postgres}.",
            "Make sure that both were released together.",
        )
    elif postgres != expected:
        yield Finding(
            "error",
            f"dagster {dagster} and dagster-postgres {postgres} do not belong together.",
            f"Install the pair of one release: pip install dagster=={dagster} dagster-postgres=={expected}.",
        )
    else:
        yield Finding("ok", f"dagster {dagster} and dagster-postgres {postgres} are of one release.")
    webserver = packages.get("dagster-webserver")
    if webserver is None:
        yield Finding(
            "note",
            "dagster-webserver is not installed, so there is no UI and `stepacc dev` does not start.",
            f"Run pip install dagster-webserver=={dagster} where the UI is wanted.",
        )
    elif webserver != dagster:
        yield Finding(
            "error",
            f"dagster {dagster} and dagster-webserver {webserver} do not belong together.",
            f"Run pip install dagster-webserver=={dagster}.",
        )
