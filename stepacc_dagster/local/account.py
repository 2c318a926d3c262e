"""The operating-system account that the local server runs as.

PostgreSQL refuses to run as root. Where the caller is root, the server runs as the owner of its
data, else as `postgres`, else as `nobody`: an account that exists, since `initdb` fails for a uid
without a passwd entry, and none is ever created.
"""

import os
import pwd
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stepacc_dagster.errors import LocalServerError

# The tools get this and nothing else: PGPORT or PGOPTIONS of a user must not reach the server.
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the server, and how to run a command as them.

    Args:
        name: the login name.
        uid: the user id.
        gid: the id of the primary group.
        switch: whether the caller is somebody else (root), and so must change over.
    """

    name: str
    uid: int
    gid: int
    switch: bool

    def popen(
        self,
        command: Sequence[str | Path],
        *,
        output: IO[bytes] | int = subprocess.DEVNULL,
        stdin: int = subprocess.DEVNULL,
        environment: Mapping[str, str] | None = None,
        keep: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a command as this account.

        Args:
            command: the program and its arguments.
            output: where standard output and error go; never a pipe when a server may inherit it.
            stdin: where standard input comes from.
            environment: variables besides the fixed few.
            keep: file descriptors the command inherits.

        Returns:
            The running process.

        Raises:
            OSError: the account may not execute the program.
        """
        return subprocess.Popen(  # noqa: S603 - the command is built here, never by a user's string
            [str(part) for part in command],
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={**_ENVIRONMENT, **(environment or {})},
            pass_fds=keep,
            start_new_session=True,  # a Ctrl-C is for the caller, who then stops the server in good order
            user=self.uid if self.switch else None,
            group=self.gid if self.switch else None,
            extra_groups=[] if self.switch else None,
        )

    def succeeds(self, command: Sequence[str | Path]) -> bool:
        """Whether a command ends well when this account runs it."""
        try:
            with self.popen(command) as process:
                return process.wait() == 0
        except OSError:
            return False

    def can_enter(self, folder: Path) -> bool:
        """Whether this account may enter a folder, all its parents included."""
        return not self.switch or self.succeeds(["/bin/sh", "-c", 'cd -- "$1"', "sh", folder])

    def give(self, path: Path) -> None:
        """Make this account the owner of a path."""
        if self.switch:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def server_account(data: Path) -> Account:
    """Choose who runs the server over a data folder.

    Args:
        data: the data folder, which need not exist.

    Returns:
        The caller's own account, or for root the one to change to.

    Raises:
        LocalServerError: the caller is root and there is no account to change to.
    """
    uid = os.geteuid()
    if uid != 0:
        return _account_of(uid, switch=False)
    if (data / "PG_VERSION").exists():
        return _account_of(data.stat().st_uid, switch=True)
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, switch=True)
    message = (
        "PostgreSQL does not run as root, and neither the user 'postgres' nor 'nobody' exists: "
        "run stepacc as another user, or set STEPACC_DATABASE_URL to a server that runs already."
    )
    raise LocalServerError(message)


def _account_of(uid: int, *, switch: bool) -> Account:
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        message = (
            f"The user id {uid} has no name on this system, and PostgreSQL does not start for it: "
            "run stepacc as a named user, or set STEPACC_DATABASE_URL to a server that runs already."
        )
        raise LocalServerError(message) from None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, switch)
