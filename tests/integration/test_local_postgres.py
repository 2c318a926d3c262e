"""The local PostgreSQL server, run by real processes."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from stepacc_dagster.errors import LocalServerError, MissingServerError
from stepacc_dagster.local.binaries import find_binaries
from stepacc_dagster.local.home import local_home, lock_file, try_exclusive
from stepacc_dagster.local.pidfile import PidFile, is_server_process
from stepacc_dagster.local.postgres import running_postgres, throwaway_postgres
from stepacc_dagster.local.server import SOCKETS, LocalPostgres

REPOSITORY = Path(__file__).resolve().parents[2]
AS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not AS_ROOT, reason="only root can change to another user")

# Uses the server of the home given, tells its process id, and leaves when a line comes in.
USE = """
import sys
from pathlib import Path
import psycopg
from stepacc_dagster.local.pidfile import PidFile
from stepacc_dagster.local.postgres import running_postgres
with running_postgres(Path(sys.argv[1])) as server:
    with psycopg.connect(server.url().replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")
        connection.execute("CREATE TABLE IF NOT EXISTS visits (id bigint GENERATED ALWAYS AS IDENTITY)")
        connection.execute("INSERT INTO visits DEFAULT VALUES")
        connection.execute("SELECT pg_advisory_unlock(1)")
        print(PidFile.read(server.data).pid, flush=True)
        sys.stdin.readline()
        print(connection.execute("SELECT 'still here'").fetchone()[0], flush=True)
"""
THROWAWAY = """
import sys
from stepacc_dagster.local.pidfile import PidFile
from stepacc_dagster.local.postgres import throwaway_postgres
with throwaway_postgres() as server:
    print(PidFile.read(server.data).pid, flush=True)
    print(server.folder, flush=True)
    print(server.binaries.folder, flush=True)
    sys.stdin.readline()
"""


@dataclass(frozen=True)
class Python:
    """An interpreter and the user it runs as."""

    path: Path
    uid: int | None = None
    gid: int | None = None
    libraries: str = ""

    def start(self, code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
        """Run code that is spoken with by lines."""
        paths = [str(REPOSITORY), *(path for path in sys.path if path.endswith("-packages"))]
        kept = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        if self.libraries:
            kept["LD_LIBRARY_PATH"] = self.libraries
        if chosen := os.environ.get("STEPACC_PG_BIN"):
            kept["STEPACC_PG_BIN"] = chosen
        return subprocess.Popen(
            [self.path, "-W", "error", "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env={**kept, **environment},
            user=self.uid,
            group=self.gid,
            extra_groups=[] if self.uid else None,
        )


SELF = Python(Path(sys.executable))


@pytest.fixture(scope="session")
def plain() -> Iterator[Python]:
    """An interpreter run by a user who is not root; a copy, where they cannot reach that of root."""
    if not AS_ROOT:
        yield SELF
        return
    nobody = pwd.getpwnam("nobody")
    with tempfile.TemporaryDirectory(prefix="stepacc-test-") as folder:
        Path(folder).chmod(0o755)
        name = f"python{sys.version_info.major}.{sys.version_info.minor}"
        copy = Python(Path(folder) / "bin" / name, nobody.pw_uid, nobody.pw_gid, libraries=f"{folder}/lib")
        for python in (Python(Path(sys.executable), nobody.pw_uid, nobody.pw_gid), copy):
            if python is copy:
                _copy_interpreter(Path(folder), name)
            try:
                with python.start("import psycopg, stepacc_dagster.local.postgres") as process:
                    said = process.communicate()[1]
            except PermissionError as error:
                said = str(error)
            if not said:
                yield python
                return
        pytest.skip(f"the user nobody cannot run this Python with these packages: {said.strip().splitlines()[-1]}")


def _copy_interpreter(folder: Path, name: str) -> None:
    for part in ("bin", "lib"):
        (folder / part).mkdir()
    shutil.copy(Path(sys.base_prefix) / "bin" / name, folder / "bin" / name)
    left_out = shutil.ignore_patterns("test", "site-packages", "__pycache__", "config-*", "idlelib", "tkinter")
    shutil.copytree(Path(sysconfig.get_path("stdlib")), folder / "lib" / name, ignore=left_out)
    for library in (Path(sys.base_prefix) / "lib").glob("libpython*.so*"):
        shutil.copy(library, folder / "lib" / library.name)


@pytest.fixture(scope="session")
def _made_home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="stepacc-test-") as folder:
        Path(folder).chmod(0o755)
        with running_postgres(Path(folder)):
            pass
        yield Path(folder)


@pytest.fixture
def home(_made_home: Path, open_home: Path) -> Path:
    """A folder of stepacc whose server has run before: a copy, which is quicker than to make its data."""
    subprocess.run(["cp", "-a", f"{_made_home}/.", open_home], check=True)  # noqa: S607 - it keeps the owners
    return open_home


@pytest.fixture
def plain_home(plain: Python, open_home: Path) -> Path:
    """A folder of stepacc that belongs to the plain user."""
    folder = open_home / "plain"
    folder.mkdir(mode=0o700)
    if plain.uid is not None and plain.gid is not None:
        os.chown(folder, plain.uid, plain.gid)
    return folder


def line(process: subprocess.Popen[str]) -> str:
    """The next line of a child, or all it had to say for itself."""
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if not said:
        pytest.fail(f"the child said nothing, and on standard error:\n{process.communicate()[1]}")
    return said


def leave(process: subprocess.Popen[str]) -> str:
    """Let a child leave; what it says last."""
    out, err = process.communicate("\n", timeout=60)
    assert (process.returncode, err) == (0, "")
    return out.strip()


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether something comes true within half a minute."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


def query(server: LocalPostgres, statement: str) -> list[tuple[object, ...]]:
    """Ask the server of this process."""
    with psycopg.connect(server.url().replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []


def running(server: LocalPostgres) -> PidFile:
    """What the running server says of itself."""
    found = PidFile.read(server.data)
    assert found is not None
    return found


def nothing_left(home: Path, *pids: int) -> bool:
    """Whether no process of a server over a home lives, and no socket of it is there."""
    with lock_file(home / "postgres.alive") as alive:
        free = try_exclusive(alive)
    return free and PidFile.read(home / "postgres") is None and not any(is_server_process(pid) for pid in pids)


# one process


@pytest.mark.parametrize("name", ['ä "home", $HOME and `ticks`', "l" * 200], ids=["odd", "long"])
def test_data_last_from_one_run_to_the_next(open_home: Path, name: str) -> None:
    """Wherever the folder lies, the second run finds what the first one wrote, and nothing stays running."""
    home = open_home / name / name
    with running_postgres(home) as server:
        first = running(server)
        query(server, "CREATE TABLE kept AS SELECT 1 AS one")
    assert nothing_left(home, first.pid)
    assert not Path(first.sockets).exists()
    with running_postgres(home) as server:
        second = running(server)
        assert query(server, "SELECT one FROM kept") == [(1,)]
    assert nothing_left(home, second.pid)
    assert first.sockets != second.sockets


def test_only_the_servers_user_reaches_it(home: Path) -> None:
    """No password is asked, so the socket lies where nobody else gets, and there is no TCP."""
    with running_postgres(home) as server:
        found = running(server)
        folder = Path(found.sockets).stat()
        assert folder.st_mode & 0o777 == 0o700
        assert folder.st_uid == server.account.uid
        assert len(f"{found.sockets}/.s.PGSQL.5432") < 100
        assert query(server, "SHOW listen_addresses") == [("",)]
        assert server.data.stat().st_mode & 0o777 == 0o700
        assert server.log.stat().st_mode & 0o077 == 0


def test_settings_of_the_caller_do_not_reach_the_server(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PGPORT and its like are for other servers."""
    for name, value in {
        "PGPORT": "1",
        "PGDATA": "/nowhere",
        "PGHOST": "nowhere",
        "PGUSER": "x",
        "PGDATABASE": "x",
    }.items():
        monkeypatch.setenv(name, value)
    with running_postgres(home) as server:
        assert query(server, "SELECT current_user, current_database()") == [("postgres", "stepacc")]


def test_text_is_ordered_by_code_point(home: Path) -> None:
    """As on every other server, whatever the language of the machine."""
    with running_postgres(home) as server:
        ordered = query(server, "SELECT string_agg(c, '' ORDER BY c) FROM unnest('{b,a,B,A,ä}'::text[]) AS t (c)")
        assert ordered == [("ABabä",)]
        assert query(server, "SHOW timezone") == [("UTC",)]


def test_an_interrupted_creation_is_begun_anew(open_home: Path) -> None:
    """Half of the data is never taken for all of it."""
    half = open_home / "postgres.new-half"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    (open_home / "postgres").mkdir()
    with running_postgres(open_home) as server:
        assert query(server, "SELECT 1") == [(1,)]
    assert not half.exists()


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGQUIT], ids=["SIGKILL", "SIGQUIT"])
def test_a_killed_server_is_started_again(home: Path, kill: signal.Signals) -> None:
    """The next who comes finds the data, even while the first has not left."""
    with running_postgres(home) as server:
        query(server, "CREATE TABLE kept AS SELECT 1 AS one")
        first = running(server)
        os.kill(first.pid, kill)
        with running_postgres(home) as again:
            assert query(again, "SELECT one FROM kept") == [(1,)]
            assert running(again).pid != first.pid
        assert query(server, "SELECT one FROM kept") == [(1,)]
        second = running(server)
    assert nothing_left(home, first.pid, second.pid)
    assert not Path(first.sockets).exists()


def test_a_stranger_with_the_old_process_id_is_no_obstacle(home: Path) -> None:
    """As after a restart of a container, where ids begin anew."""
    with running_postgres(home) as server:
        query(server, "CREATE TABLE kept AS SELECT 1 AS one")
        first = running(server)
        os.kill(first.pid, signal.SIGKILL)
        assert eventually(lambda: not is_server_process(first.pid))
        with server.account.popen(["/bin/sleep", "60"]) as stranger:
            lines = first.path.read_text().splitlines(keepends=True)
            first.path.write_text("".join([f"{stranger.pid}\n", *lines[1:]]))
            with running_postgres(home) as again:
                assert query(again, "SELECT one FROM kept") == [(1,)]
            stranger.terminate()
    assert nothing_left(home)


def test_a_server_started_by_hand_is_used_and_kept_apart(home: Path) -> None:
    """Whoever started it, there is one server over the data; the last user stops it."""
    with running_postgres(home) as server:
        pass
    sockets = home / "by-hand"
    sockets.mkdir(mode=0o700)
    server.account.give(sockets)
    command: list[str | Path] = [server.binaries.folder / "pg_ctl", "start", "-w", "-o", f"-k {sockets}"]
    with server.account.popen(command, environment={"PGDATA": str(server.data)}) as process:
        assert process.wait() == 0
    by_hand = running(server)
    with running_postgres(home) as server:
        assert running(server).pid == by_hand.pid
    assert nothing_left(home, by_hand.pid)


# places that are of no use


def refused(home: Path) -> str:
    """The sentence of a home that cannot be used."""
    with pytest.raises(LocalServerError) as error, running_postgres(home):
        pass
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message


def test_a_foreign_folder_is_left_alone(open_home: Path) -> None:
    """What is no data of a server is told and not touched."""
    (open_home / "postgres").mkdir()
    (open_home / "postgres" / "thesis.txt").write_text("years of work")
    message = refused(open_home)
    assert str(open_home / "postgres") in message
    assert (open_home / "postgres" / "thesis.txt").read_text() == "years of work"
    assert not list(open_home.glob("postgres.new-*"))


def test_data_of_another_version_is_told(home: Path) -> None:
    """A server is never let loose on what another version wrote."""
    with running_postgres(home) as server:
        version = server.data / "PG_VERSION"
    version.write_text("12\n")
    message = refused(home)
    assert "PostgreSQL 12" in message
    assert "STEPACC_PG_BIN" in message


def test_a_broken_configuration_is_told_with_the_reason(home: Path) -> None:
    """The server's own words and the place of its log are in the sentence."""
    with running_postgres(home) as server:
        pass
    with (server.data / "postgresql.conf").open("a") as config:
        config.write("shared_buffers = 'a lot'\n")
    message = refused(home)
    assert "shared_buffers" in server.log.read_text()
    assert str(server.log) in message


def test_a_wrong_folder_of_programs_is_told(open_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`STEPACC_PG_BIN` wins, so its mistakes are not passed over."""
    monkeypatch.setenv("STEPACC_PG_BIN", str(open_home))
    with pytest.raises(MissingServerError, match="STEPACC_PG_BIN") as error:
        find_binaries()
    assert repr(str(open_home)) in str(error.value)


def test_a_system_server_works_too(open_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`STEPACC_PG_BIN` names any server from 15 on."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        pytest.skip("there is no PostgreSQL of the system below /usr/lib/postgresql")
    monkeypatch.setenv("STEPACC_PG_BIN", str(found[-1].parent))
    with running_postgres(open_home) as server:
        assert server.binaries.folder == found[-1].parent
        assert query(server, "SELECT 1") == [(1,)]
    monkeypatch.delenv("STEPACC_PG_BIN")
    with running_postgres(open_home) as server:
        assert server.binaries.major == int((server.data / "PG_VERSION").read_text())


def test_a_home_that_cannot_be_written_is_told(plain: Python, open_home: Path) -> None:
    """The sentence names the variable that moves it."""
    (open_home / "closed").mkdir(mode=0o555)
    with plain.start(USE, open_home / "closed" / "home") as process:
        _, err = process.communicate()
    assert "LocalServerError" in err
    assert "STEPACC_HOME" in err.splitlines()[-1]


# root and others


@needs_root
def test_root_runs_the_server_as_somebody_else(open_home: Path) -> None:
    """PostgreSQL refuses root; no account is created for it, and no folder opened."""
    users = Path("/etc/passwd").read_text()
    with running_postgres(open_home / "home") as server:
        assert Path(f"/proc/{running(server).pid}").stat().st_uid == server.account.uid != 0
        assert server.account.name in {"postgres", "nobody"}
    assert Path("/etc/passwd").read_text() == users
    assert (open_home / "home").stat().st_uid == 0


@needs_root
def test_root_is_told_of_a_folder_that_is_closed_to_the_server(open_home: Path) -> None:
    """And the folder stays closed."""
    open_home.chmod(0o700)
    message = refused(open_home / "home")
    assert "cannot enter" in message
    assert "STEPACC_HOME" in message
    assert "/var/lib/stepacc" in message
    assert open_home.stat().st_mode & 0o777 == 0o700


@needs_root
def test_root_with_a_narrow_umask_makes_an_open_home(open_home: Path) -> None:
    """What root creates, the server's account can enter."""
    before = os.umask(0o077)
    try:
        with running_postgres(open_home / "a" / "b") as server:
            assert query(server, "SELECT 1") == [(1,)]
    finally:
        os.umask(before)


@needs_root
def test_programs_in_a_closed_environment_are_copied(open_home: Path) -> None:
    """Root's environment is often closed to others; it is copied from, not opened."""
    binaries = find_binaries()
    if binaries.package is None:
        pytest.skip("the server is no Python package here, so there is nothing to copy")
    closed = open_home / "closed"
    closed.mkdir(mode=0o700)
    for part in (binaries.package, binaries.package.with_name(f"{binaries.package.name}.libs")):
        if part.exists():
            shutil.copytree(part, closed / part.name, symlinks=True)
    code = f"import sys; sys.path.insert(0, {str(closed)!r})\n"
    with SELF.start(code + THROWAWAY) as process:
        pid, folder, programs = int(line(process)), Path(line(process)), Path(line(process))
        assert programs.is_relative_to(folder)
        leave(process)
    assert not folder.exists()
    kept = (
        "from pathlib import Path\nfrom stepacc_dagster.local import postgres\n"
        f"postgres.ROOT_HOME = Path({str(open_home)!r})\n"
    )
    for _ in range(2):
        with SELF.start(code + kept + USE, open_home / "home") as process:
            pid = int(line(process))
            assert Path(f"/proc/{pid}/exe").resolve().is_relative_to(open_home / "binaries")
            leave(process)
    assert len(list((open_home / "binaries").iterdir())) == 1
    assert closed.stat().st_mode & 0o777 == 0o700
    (open_home / "binaries").chmod(0o777)
    with SELF.start(code + kept + USE, open_home / "home") as process:
        assert "can be written by others" in process.communicate()[1]


def test_a_plain_user_runs_their_own(plain: Python, plain_home: Path) -> None:
    """With nothing of root's, and twice in a row."""
    for _ in range(2):
        with plain.start(USE, plain_home) as process:
            pid = int(line(process))
            if plain.uid is not None:
                assert Path(f"/proc/{pid}").stat().st_uid == plain.uid
            assert leave(process) == "still here"
        assert nothing_left(plain_home, pid)


@needs_root
def test_two_users_at_once(plain: Python, plain_home: Path, open_home: Path) -> None:
    """On one machine, each has a server of their own."""
    with plain.start(USE, plain_home) as process, running_postgres(open_home / "root") as server:
        pid = int(line(process))
        assert pid != running(server).pid
        assert query(server, "SELECT 1") == [(1,)]
        assert leave(process) == "still here"


@needs_root
def test_root_leaves_a_users_folder_usable_to_them(plain: Python, plain_home: Path) -> None:
    """Whoever comes first, the owner of the folder can go on."""
    with plain.start(USE, plain_home) as process:
        line(process)
        leave(process)
    with running_postgres(plain_home) as server:
        assert server.account.uid == plain.uid
        assert query(server, "SELECT count(*) FROM visits") == [(1,)]
    with plain.start(USE, plain_home) as process:
        line(process)
        assert leave(process) == "still here"


# several at once


def test_the_last_user_stops_the_server(home: Path) -> None:
    """Nobody is cut off by another who leaves, and nothing is left running."""
    with SELF.start(USE, home) as first, SELF.start(USE, home) as second:
        pid = int(line(first))
        assert int(line(second)) == pid
        assert leave(first) == "still here"
        assert is_server_process(pid)
        with SELF.start(USE, home) as third:
            assert int(line(third)) == pid
            assert leave(second) == "still here"
            assert leave(third) == "still here"
    assert nothing_left(home, pid)


def test_a_killed_user_does_not_count(home: Path) -> None:
    """The server outlives them, serves the next, and goes when that one leaves."""
    with SELF.start(USE, home) as first:
        pid = int(line(first))
        first.kill()
        first.communicate()
    assert is_server_process(pid)
    with SELF.start(USE, home) as second:
        assert int(line(second)) == pid
        assert leave(second) == "still here"
    assert nothing_left(home, pid)


def test_an_interrupted_user_stops_the_server(home: Path) -> None:
    """Ctrl-C reaches the user alone, who then leaves in good order."""
    with SELF.start(USE, home) as process:
        pid = int(line(process))
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate()[1]
    assert nothing_left(home, pid)


def test_eight_processes_start_it_at_once(open_home: Path) -> None:
    """On an empty folder: one creates the data, all use one server, and the last one stops it."""
    children = [SELF.start(USE, open_home) for _ in range(8)]
    pids = {int(line(child)) for child in children}
    assert len(pids) == 1
    for child in children:
        with child:
            assert leave(child) == "still here"
    assert nothing_left(open_home, *pids)
    with running_postgres(open_home) as server:
        assert query(server, "SELECT count(*) FROM visits") == [(8,)]


def test_users_come_and_go(home: Path) -> None:
    """Eight processes that come and go at once, three times each, lose nothing and see no error."""
    code = "import subprocess, sys\n" + USE.replace("sys.stdin.readline()", "pass")
    loop = "for _ in range(3):\n" + "".join(f"    {row}\n" for row in code.splitlines())
    children = [SELF.start(loop, home) for _ in range(8)]
    for child in children:
        with child:
            assert child.communicate(timeout=120)[1] == ""
    assert nothing_left(home)
    with running_postgres(home) as server:
        assert query(server, "SELECT count(*) FROM visits") == [(24,)]


# throwaway


def test_a_throwaway_server_leaves_nothing() -> None:
    """Neither process nor file."""
    with throwaway_postgres() as server:
        with psycopg.connect(server.url("postgres").replace("+psycopg", "")) as connection:
            assert connection.execute("SHOW fsync").fetchone() == ("off",)
        pid = running(server).pid
    assert not is_server_process(pid)
    assert not server.folder.exists()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=["SIGKILL", "SIGTERM"])
def test_a_throwaway_server_dies_with_its_owner(end: signal.Signals) -> None:
    """However the owner goes; its data goes too."""
    with SELF.start(THROWAWAY) as process:
        pid, folder = int(line(process)), Path(line(process))
        process.send_signal(end)
        process.communicate()
    assert eventually(lambda: not folder.exists())
    assert eventually(lambda: not is_server_process(pid))


def test_a_plain_user_has_a_throwaway_server(plain: Python) -> None:
    """As root has."""
    with plain.start(THROWAWAY) as process:
        pid, folder = int(line(process)), Path(line(process))
        process.kill()
        process.communicate()
    assert eventually(lambda: not folder.exists())
    assert eventually(lambda: not is_server_process(pid))


@pytest.mark.parametrize("delay", [0.1, 0.3, 0.5])
def test_an_owner_killed_while_starting_leaves_nothing(delay: float) -> None:
    """At whatever point of the start."""
    own = f"{SOCKETS}{os.getpid()}-"
    renamed = f"from stepacc_dagster.local import postgres\npostgres.SOCKETS = {own!r}\nprint('go', flush=True)\n"
    code = THROWAWAY.replace("with throwaway", f"{renamed}with throwaway")
    with SELF.start(code) as process:
        assert line(process) == "go"
        time.sleep(delay)
        process.kill()
        process.communicate()
    assert eventually(lambda: not list(Path("/").glob(f"{own[1:]}*")))


# where


@pytest.mark.parametrize(
    ("variables", "root", "expected"),
    [
        ({"STEPACC_HOME": "/a/b"}, False, "/a/b"),
        ({"STEPACC_HOME": "/a/b"}, True, "/a/b"),
        ({"XDG_DATA_HOME": "/x"}, False, "/x/stepacc"),
        ({"XDG_DATA_HOME": "relative"}, False, "/h/.local/share/stepacc"),
        ({}, False, "/h/.local/share/stepacc"),
        ({"XDG_DATA_HOME": "/x"}, True, "/var/lib/stepacc"),
        ({}, True, "/var/lib/stepacc"),
    ],
)
def test_the_home(
    variables: dict[str, str],
    root: bool,  # noqa: FBT001 - a case, not a switch
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`STEPACC_HOME`, then the XDG folder, then the one below the user's; root's own is closed to the server."""
    monkeypatch.setenv("HOME", "/h")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("stepacc_dagster.local.home.os.geteuid", lambda: 0 if root else 1000)
    assert local_home() == Path(expected)
