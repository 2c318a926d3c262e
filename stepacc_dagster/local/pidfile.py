"""`postmaster.pid`, through which a running PostgreSQL server is found again."""

import os
import socket
import stat
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_NO_PROCESS = 2**31 - 2  # no system gives out this process id
_SSL_REQUEST = struct.pack("!ii", 8, 80877103)
_READY = ("ready", "standby")


@dataclass(frozen=True, slots=True)
class PidFile:
    """What the server wrote about itself.

    Args:
        path: the file.
        pid: the process id of the postmaster.
        port: the port, which is part of the socket's name.
        sockets: the folder of the socket.
        ready: whether it takes connections.
    """

    path: Path
    pid: int
    port: int
    sockets: str
    ready: bool

    @classmethod
    def read(cls, data: Path) -> Self | None:
        """Read the file of a data folder.

        Args:
            data: the data folder.

        Returns:
            Its content; None when there is none or it is not complete yet.
        """
        path = data / "postmaster.pid"
        with suppress(OSError, ValueError, IndexError):
            lines = path.read_text().splitlines()
            ready = len(lines) > 7 and lines[7].strip() in _READY  # noqa: PLR2004 - the eighth line is its state
            return cls(path, int(lines[0]), int(lines[3]), lines[4].strip(), ready)
        return None

    def answers(self, uid: int) -> bool:
        """Whether a living server of this user takes connections.

        To connect is no proof: after a kill -9 of the postmaster its children hold the socket for
        a moment. So ask for TLS, which every server answers with one byte.

        Args:
            uid: the user who runs the server.
        """
        if not self.ready or not is_private(self.sockets, uid):
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(2)
            try:
                probe.connect(f"{self.sockets}/.s.PGSQL.{self.port}")
                probe.sendall(_SSL_REQUEST)
                return probe.recv(1) in (b"N", b"S")
            except OSError:
                return False

    def disown(self) -> None:
        """Make the file of a dead server name no process.

        The server refuses to start while the process of that id lives, though it may be a zombie or
        a stranger who got the id after a restart of the container. To remove the file would also
        remove the key of the shared memory, by which the server sees children of the dead one.
        """
        lines = self.path.read_text().splitlines(keepends=True)
        lines[0] = f"{_NO_PROCESS}\n"
        self.path.write_text("".join(lines))


def is_private(folder: str, uid: int) -> bool:
    """Whether a folder belongs to a user, and only they can enter it.

    Args:
        folder: its path.
        uid: the user.
    """
    with suppress(OSError):
        found = Path(folder).lstat()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o077
    return False


def is_server_process(pid: int) -> bool:
    """Whether a process is a PostgreSQL server that lives; yes where the system does not tell.

    Args:
        pid: its id.
    """
    if not Path("/proc/self/stat").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return False
    return name.startswith("postgres") and rest.split()[0] != "Z"
