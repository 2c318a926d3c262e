"""Runs of commands that were killed: ended, and their pool slots freed, before a command runs anything.

Dagster's daemon does this for the runs it watches. A command runs without a daemon, and a slot that nobody frees would
let every later run wait for ever.
"""

import os
import socket
from pathlib import Path

import dagster as dg

_PROCESS_TAG = ".dagster/stepacc_process"  # of no use to people: Dagster hides tags that begin so
_UNFINISHED = [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED]


def process_tags() -> dict[str, str]:
    """Return the tag by which a run of this process is known, also to a later process with its number."""
    return {_PROCESS_TAG: f"{socket.gethostname()} {os.getpid()} {_started(os.getpid())}"}


def end_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Fail the runs of commands of this machine whose process is gone, free their slots, and return their ids."""
    ended = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED)):
        if is_dead(run):
            instance.report_run_failed(run, message="The process of this run is gone; it was ended from outside.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            ended.append(run.run_id)
    return ended


def is_dead(run: dg.DagsterRun) -> bool:
    """Whether an unfinished run is that of a command on this machine whose process is gone."""
    host, _, process = run.tags.get(_PROCESS_TAG, "").partition(" ")
    return run.status in _UNFINISHED and host == socket.gethostname() and not _alive(process)


def _alive(process: str) -> bool:
    number, _, started = process.partition(" ")
    return number.isdecimal() and _started(int(number)) == started


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
