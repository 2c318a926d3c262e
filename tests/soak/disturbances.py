"""What is done to the processes of a soak, at moments that a seed gives."""

import os
import random
import signal
import time
from collections.abc import Callable

import sqlalchemy as sa

from tests.integration.disturbed_processes import Stage
from tests.integration.test_disturbed_commands import kill_and_start
from tests.soak.service import Service

_OLDEST = 8.0
"""Seconds up to which a run worker is let live before it is killed."""
_WORKER, _DAEMON = "spawn_main", "dagster._daemon"
_BACKEND = """
    SELECT pid FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY state = 'idle', pid
"""


class Disturber:
    """Does one thing after another to a stage.

    Args:
        stage: what is disturbed.
        service: the command that is at work there.
        chance: chooses what and whom.
        note: is told what was done.
    """

    def __init__(self, stage: Stage, service: Service, chance: random.Random, note: Callable[[str], None]) -> None:
        self._stage, self._service, self._chance, self._note = stage, service, chance, note
        self._seen: dict[int, float] = {}
        self._age = chance.uniform(0, _OLDEST)
        self.pending: list[str] = []
        """What is to be done as soon as there is somebody to do it to."""
        self.done: list[str] = []
        """What was done, in order."""
        self._kinds: dict[str, Callable[[], str | None]] = {
            "Postgres restarted": self._restart_postgres,
            "Postgres killed": self._kill_postgres,
            "a Postgres backend killed": self._kill_backend,
            "a run worker killed": self._kill_worker,
            "the daemon killed": lambda: self._kill_daemon(os.kill),
            "the daemon killed with its runs": lambda: self._kill_daemon(os.killpg),
        }

    @property
    def kinds(self) -> list[str]:
        """What can be done."""
        return list(self._kinds)

    def disturb(self, kind: str) -> None:
        """Do something of a kind, as soon as there is somebody to do it to."""
        self.pending.append(kind)

    def look(self) -> None:
        """Do what can be done now; to be called often."""
        now = time.monotonic()
        self._seen = {pid: self._seen.get(pid, now) for pid in self._stage.processes(_WORKER)}
        for kind in list(dict.fromkeys(self.pending)):
            said = self._kinds[kind]()
            if said is not None:
                self.pending.remove(kind)
                self.done.append(kind)
                self._note(f"{kind}{said}")

    def _kill_worker(self) -> str | None:
        for pid, since in self._seen.items():
            age = time.monotonic() - since
            if age >= self._age and _killed(os.kill, pid):
                self._age = self._chance.uniform(0, _OLDEST)
                return f", {age:.1f} s after it was first seen"
        return None

    def _restart_postgres(self) -> str:
        pause = self._chance.uniform(0, 3)
        self._stage.server.stop("fast")
        time.sleep(pause)
        self._stage.server.start()
        return f", after {pause:.1f} s"

    def _kill_postgres(self) -> str:
        kill_and_start(self._stage.server)
        return " and started again"

    def _kill_backend(self) -> str | None:
        """As the system does when memory is short: then Postgres ends all connections, and recovers."""
        try:
            found = self._stage.rows(_BACKEND)
        except sa.exc.DBAPIError:
            return None
        return "" if found and _killed(os.kill, self._chance.choice(found)[0]) else None

    def _kill_daemon(self, kill: Callable[[int, int], None]) -> str | None:
        found = self._stage.processes(_DAEMON)
        if not found or not _killed(kill, found[0]):
            return None
        self._service.blame()
        return ""


def _killed(kill: Callable[[int, int], None], pid: int) -> bool:
    """Kill a process, or its group; tell whether it was still there."""
    try:
        kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
