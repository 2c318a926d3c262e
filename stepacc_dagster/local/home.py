"""The folder of the local server and the local Dagster instance, and the locks in it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stepacc_dagster.errors import LocalServerError

ROOT_HOME = Path("/var/lib/stepacc")  # root's own home is closed to the account that the server runs as


def local_home() -> Path:
    """Return the folder that holds what stepacc keeps on this machine; it need not exist.

    Returns:
        `STEPACC_HOME`; else `/var/lib/stepacc` for root; else `stepacc` below an absolute
        `XDG_DATA_HOME` or below `~/.local/share`.
    """
    if home := os.environ.get("STEPACC_HOME"):
        return Path(home).expanduser().absolute()
    if os.geteuid() == 0:
        return ROOT_HOME
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (data if data.is_absolute() else Path.home() / ".local/share") / "stepacc"


def local_defs_folder() -> Path:
    """Return the folder in which each source has a folder with its `defs.yaml`: `STEPACC_DEFS`, else in the home."""
    return Path(os.environ.get("STEPACC_DEFS") or local_home() / "defs")


def make_home(home: Path) -> None:
    """Create the folder where it is missing: private for a user, open to enter for root.

    Args:
        home: the folder of stepacc.

    Raises:
        LocalServerError: it cannot be created.
    """
    mode = 0o755 if os.geteuid() == 0 else 0o700
    missing = [folder for folder in (home, *home.parents) if not folder.exists()]
    try:
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(None, "it is not writable")
    except OSError as error:
        message = (
            f"The folder {home}, where stepacc keeps its local server, cannot be used ({error.strerror}): "
            "set STEPACC_HOME to a folder you can write to, or STEPACC_DATABASE_URL to a PostgreSQL server."
        )
        raise LocalServerError(message) from error


@contextmanager
def lock_file(path: Path) -> Iterator[int]:
    """Open a lock file, without locking it.

    Args:
        path: the file, created where missing.

    Yields:
        The descriptor; a lock on it ends with the block, or with the process.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        owner = path.parent.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:  # root in a user's folder: leave the file usable to them
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the exclusive lock of a file, waiting for it.

    Args:
        path: the lock file.
    """
    with lock_file(path) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def try_exclusive(descriptor: int) -> bool:
    """Take the exclusive lock if nobody else holds any.

    Args:
        descriptor: an open lock file.

    Returns:
        Whether it was taken.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
