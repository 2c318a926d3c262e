"""A private PostgreSQL server: from installed binaries, without root, containers or a network.

It listens on a Unix socket only, in a folder of mode 0700 with a short name that nobody can guess;
therefore connections need no password.
"""

import fcntl
import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from stepacc_dagster.errors import LocalServerError
from stepacc_dagster.local.account import Account
from stepacc_dagster.local.binaries import Binaries
from stepacc_dagster.local.home import lock_file, try_exclusive
from stepacc_dagster.local.pidfile import PidFile, is_private, is_server_process

DATABASE = "stepacc"
SOCKETS = "/tmp/stepacc-"  # noqa: S108 - mkdtemp adds the rest; a socket's path ends at 107 bytes, so TMPDIR is too long

_PATIENCE = 60.0  # seconds for a start or a stop; a recovery after a crash takes a few
_POLL = 0.05  # seconds between two looks
_SETTINGS = """
# stepacc
listen_addresses = ''
unix_socket_permissions = 0700
timezone = 'UTC'
log_timezone = 'UTC'
"""


@dataclass(frozen=True, slots=True)
class LocalPostgres:
    """A data folder and the server over it.

    Its methods take no lock; the context managers around it do.

    Args:
        folder: holds the data (`postgres`), its log (`postgres.log`) and the lock that every
            process of a living server holds (`postgres.alive`).
        account: who runs the server.
        binaries: its programs, which the account can run.
        sockets: the folder for the socket, or None to make a new one at each start.
        settings: lines for `postgresql.conf`, written when the data is created.
    """

    folder: Path
    account: Account
    binaries: Binaries
    sockets: Path | None = None
    settings: str = ""

    @property
    def data(self) -> Path:
        """The data folder of the server."""
        return self.folder / "postgres"

    @property
    def log(self) -> Path:
        """What the server says; begun anew at each start, the one before kept beside it."""
        return self.folder / "postgres.log"

    def url(self, database: str = DATABASE) -> str:
        """Return the SQLAlchemy URL of a database on the running server, for psycopg 3.

        Args:
            database: its name.

        Raises:
            LocalServerError: the server does not run.
        """
        running = PidFile.read(self.data)
        if running is None:
            message = f"The local PostgreSQL server over {self.data} does not run: start it before asking for its URL."
            raise LocalServerError(message)
        # The port is always named, or libpq would take the user's PGPORT.
        return f"postgresql+psycopg://postgres@/{quote(database)}?host={running.sockets}&port={running.port}"

    def start(self) -> None:
        """Start the server unless it runs; create its data where there is none.

        Raises:
            LocalServerError: it cannot be started; the message names the log.
        """
        if not (self.data / "PG_VERSION").exists():
            self._create()
        if self._runs():
            return
        self._remove_sockets()
        with suppress(FileNotFoundError):
            self.log.replace(self.folder / "postgres.log.1")
        complaint = self._launch()
        if "postmaster.pid" in complaint and (stale := PidFile.read(self.data)) and not is_server_process(stale.pid):
            stale.disown()
            complaint = self._launch()
        if complaint:
            message = (
                f"The local PostgreSQL server over {self.data} did not start ({complaint}); its log is {self.log}: "
                "mend what it names, or set STEPACC_HOME to a new folder."
            )
            raise LocalServerError(message)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server if it runs, and wait until all its processes are gone.

        Args:
            mode: `fast` ends connections and writes a checkpoint; `immediate` does not, for data
                that is thrown away.
        """
        deadline = time.monotonic() + _PATIENCE
        while (running := PidFile.read(self.data)) is None and self._alive() and time.monotonic() < deadline:
            time.sleep(_POLL)  # an interrupted start goes on by itself
        if running is None:
            return
        for how in (mode, "immediate"):
            self._run("pg_ctl", "stop", "-w", "-t", str(int(_PATIENCE)), "-m", how)
            if PidFile.read(self.data) is None:
                break
        while self._alive() and time.monotonic() < deadline:
            time.sleep(_POLL)
        self._remove_sockets()

    def _create(self) -> None:
        """Initialise the data aside and move it into place, so that half of it is never taken for all."""
        for left in self.folder.glob("postgres.new-*"):
            shutil.rmtree(left, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=self.folder))
        try:
            self.account.give(scratch)
            options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-instructions"]
            if "fsync = off" in self.settings:
                options.append("--no-sync")
            said = self._run("initdb", *options, "--locale=C.UTF-8", data=scratch)
            if "invalid locale" in said:  # older macOS has no C.UTF-8
                said = self._run("initdb", *options, "--locale=C", data=scratch)
            if not (scratch / "global" / "pg_control").exists():
                message = (
                    f"The data of the local PostgreSQL server could not be created in {self.folder} "
                    f"({_last_line(said)}): mend what it names, or set STEPACC_HOME to another folder."
                )
                raise LocalServerError(message)
            with (scratch / "postgresql.conf").open("a") as config:
                config.write(_SETTINGS + self.settings)
            try:
                scratch.rename(self.data)
            except OSError as error:
                message = (
                    f"The folder {self.data} holds something else than the data of a PostgreSQL server: "
                    "move it away, or set STEPACC_HOME to another folder."
                )
                raise LocalServerError(message) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _runs(self) -> bool:
        """Whether a server answers; waits for one that is starting or going down."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            running = PidFile.read(self.data)
            if running and running.answers(self.account.uid):
                return True
            if not self._alive():
                return False
            if time.monotonic() > deadline:
                message = (
                    f"The local PostgreSQL server over {self.data} neither answers nor ends; its log is {self.log}: "
                    f"end its process{f' {running.pid}' if running else ''} and try again."
                )
                raise LocalServerError(message)
            time.sleep(_POLL)

    def _alive(self) -> bool:
        """Whether any process of the server lives; they inherit a lock, which even a kill -9 gives back."""
        with lock_file(self.folder / "postgres.alive") as descriptor:
            return not try_exclusive(descriptor)

    def _launch(self) -> str:
        """Start the server and wait until it is ready; return its complaint, or the empty string."""
        sockets = self.sockets or Path(tempfile.mkdtemp(prefix=SOCKETS, dir="/"))
        self.account.give(sockets)
        if self.sockets is None:
            self._noted_sockets.write_text(str(sockets))
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        with (
            lock_file(self.folder / "postgres.alive") as alive,
            os.fdopen(os.open(self.log, flags, 0o600), "wb") as log,
        ):
            fcntl.flock(alive, fcntl.LOCK_SH)
            command: list[str | Path] = [
                self.binaries.folder / "pg_ctl",
                "start",
                "-w",
                "-t",
                str(int(_PATIENCE)),
                "-o",
                f"-k {sockets}",
            ]
            environment = self._environment(self.data)
            with self.account.popen(command, output=log, environment=environment, keep=[alive]) as process:
                if process.wait() == 0:
                    return ""
        self._remove_sockets()
        return _last_line(self.log.read_text(errors="replace")) or "it gave no reason"

    def _run(self, tool: str, *arguments: str, data: Path | None = None) -> str:
        with tempfile.TemporaryFile() as output:  # no pipe: the server would inherit it, and it would never end
            command: list[str | Path] = [self.binaries.folder / tool, *arguments]
            environment = self._environment(data or self.data)
            with self.account.popen(command, output=output, environment=environment) as process:
                process.wait()
            output.seek(0)
            return output.read().decode(errors="replace")

    @staticmethod
    def _environment(data: Path) -> dict[str, str]:
        return {"PGDATA": str(data)}  # not -D, which pg_ctl hands to a shell: a $ or a " in the path would break it

    @property
    def _noted_sockets(self) -> Path:
        """Names the socket's folder, for its removal; to find the server, its own word counts."""
        return self.folder / "postgres.sockets"

    def _remove_sockets(self) -> None:
        """Remove the socket's folder if it is one of ours, as after a server that was killed."""
        with suppress(FileNotFoundError):
            noted = self._noted_sockets.read_text()
            if re.fullmatch(rf"{SOCKETS}\w+", noted) and is_private(noted, self.account.uid):
                shutil.rmtree(noted, ignore_errors=True)
            self._noted_sockets.unlink()


def _last_line(said: str) -> str:
    """The last line that tells of an error, without its time stamp."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"FATAL|PANIC|error:|not found", line)] or lines[-1:]
    return re.sub(r"^.*?(FATAL|PANIC):\s+", "", errors[-1]).rstrip(".") if errors else ""
