"""Runs whose process was killed: ended, and their pool slots freed, before a command or the daemon runs anything.

Dagster's daemon does this only for runs whose process was killed while it lived itself. A slot that nobody frees would
let every later run wait for ever, and a run that never ends would keep its windows to itself.
"""

import os
import re
import socket
from pathlib import Path

import dagster as dg

_PROCESS_TAG = ".dagster/stepacc_process"  # of no use to people: Dagster hides tags that begin so
_PROCESS = re.compile(r"(?P<host>\S+) (?P<number>\d+) (?P<started>\S*)(?: (?P<run>\S+))?")
_UNFINISHED = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]


def process_tags(run_id: str = "") -> dict[str, str]:
    """Return the tag by which a run of this process is known, also to a later process with its number.

    Args:
        run_id: the run, for a tag that is given to it while it runs: a run that is executed again hands its tags on.
    """
    process = f"{socket.gethostname()} {os.getpid()} {_started(os.getpid())}"
    return {_PROCESS_TAG: f"{process} {run_id}" if run_id else process}


def end_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Fail the runs of this machine whose process is gone, free their slots, and return their ids."""
    ended = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        if is_dead(run):
            instance.report_run_failed(run, message="The process of this run is gone; it was ended from outside.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            ended.append(run.run_id)
    return ended


def is_dead(run: dg.DagsterRun) -> bool:
    """Whether an unfinished run is one on this machine whose process is gone."""
    noted = _PROCESS.fullmatch(run.tags.get(_PROCESS_TAG, ""))
    if noted is None or run.status not in _UNFINISHED or noted["host"] != socket.gethostname():
        return False
    own = noted["run"] == run.run_id if noted["run"] else run.parent_run_id is None
    return own and _started(int(noted["number"])) != noted["started"]


def _started(number: int) -> str:
    """Return when a process started, in ticks since boot; empty where it is gone, a zombie, or cannot be asked."""
    try:
        state, *fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "" if not Path("/proc/self/stat").exists() and _can_be_signalled(number) else "gone"
    return "gone" if state == "Z" else fields[18]


def _can_be_signalled(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
