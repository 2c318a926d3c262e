"""Facts about a Dagster instance, without creating any of its tables.

The imports of Dagster's private modules that this takes stand here alone.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import dagster as dg
import sqlalchemy as sa
import yaml
from dagster._core.instance.ref import InstanceRef
from dagster._serdes import ConfigurableClassData
from dagster_shared.error import SerializableErrorInfo
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from stepacc_core.errors import ConfigError
from stepacc_dagster.doctor.gather.connections import Connections, reading, said
from stepacc_dagster.doctor.instance import Daemon, Instance, Monitoring, Queue, driver_problem
from stepacc_dagster.doctor.runs import Pool, UnfinishedRun
from stepacc_dagster.doctor.tickers import Ticker
from stepacc_dagster.failures import address
from stepacc_dagster.local.dead_runs import is_dead

_POSTGRES = "DagsterPostgresStorage"
_SQLITE = "DagsterSqliteStorage"
_TABLES = ("runs", "event_logs", "jobs")
"""One table of each of Dagster's three storages."""

_UNFINISHED = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_MOST_RUNS = 500
_EXISTS = sa.text("SELECT to_regclass(:name) IS NOT NULL")
_CLASS = re.compile(r"^[A-Za-z_][\w.]*: ")
"""How Dagster begins the message of an error."""
_VALUE = re.compile(r'Value ".*" of type')


def gather_instance(
    folder: Path,
    connections: Connections,
    *,
    environment: Mapping[str, str],
    pools: Mapping[str, int],
    tickers: Collection[str],
) -> Instance:
    """Look at the instance whose `dagster.yaml` is in a folder.

    Args:
        folder: its `DAGSTER_HOME`.
        connections: through which its database is tried before Dagster itself waits for it.
        environment: variables that its settings name.
        pools: the limits that manifests declare, by pool.
        tickers: names of the sensors and schedules to look up.
    """
    now = datetime.now(UTC)
    try:
        with _environment({**environment, "DAGSTER_HOME": str(folder)}):
            ref = _without_creating(InstanceRef.from_dir(str(folder)))
            storage, absent = _storage(ref, folder, connections)
            if absent:
                return Instance(now, absent=absent)
            with dg.DagsterInstance.from_ref(ref) as instance:
                return _looked_at(instance, now, storage, pools, tickers)
    except Exception as error:  # noqa: BLE001 (classes that settings name may fail in any way)
        return Instance(
            now, problem=_refused(error) if isinstance(error, dg.DagsterInvalidConfigError) else said(error)
        )


def _looked_at(
    instance: dg.DagsterInstance, now: datetime, storage: str, pools: Mapping[str, int], tickers: Collection[str]
) -> Instance:
    revision, expected = instance.run_storage.alembic_version() or (None, None)
    daemons = tuple(_daemons(instance))
    queue = instance.get_concurrency_config().run_queue_config
    limit = queue.max_concurrent_runs if queue else None
    monitoring = instance.run_monitoring_settings
    return Instance(
        now,
        storage=storage,
        revision=revision,
        expected=expected if expected is None or isinstance(expected, str) else expected[0],
        daemons=daemons,
        monitoring=Monitoring(
            instance.run_monitoring_enabled, bool(monitoring.get("free_slots_after_run_end_seconds"))
        ),
        queue=Queue(
            enabled=queue is not None,
            limit=limit if limit is not None and limit >= 0 else None,
            queued=instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED])),
        ),
        pools=tuple(_pools(instance, pools)),
        runs=tuple(_runs(instance)),
        tickers=tuple(_tickers(instance, tickers)),
    )


def _daemons(instance: dg.DagsterInstance) -> Iterator[Daemon]:
    beats = instance.get_daemon_heartbeats()
    for name in sorted(instance.get_required_daemon_types()):
        beat = beats.get(name)
        seen = datetime.fromtimestamp(beat.timestamp, UTC) if beat else None
        yield Daemon(name, seen, _told(beat.errors[0]) if beat and beat.errors else None)


def _pools(instance: dg.DagsterInstance, declared: Mapping[str, int]) -> Iterator[Pool]:
    storage = instance.event_log_storage
    in_force = storage.supports_global_concurrency_limits
    infos = {name: storage.get_concurrency_info(name) for name in declared} if in_force else {}
    claimed = {slot.run_id for info in infos.values() for slot in info.claimed_slots}
    living: set[str] = set()
    if claimed:  # Dagster takes no filter by no ids
        filters = dg.RunsFilter(run_ids=sorted(claimed), statuses=_UNFINISHED)
        living = {run.run_id for run in instance.get_runs(filters)}
    for name, limit in sorted(declared.items()):
        info = infos.get(name)
        yield Pool(
            name,
            limit=None if info is None or info.using_default_limit else info.limit,
            declared=limit,
            in_force=in_force,
            held_by_ended=tuple(sorted({slot.run_id for slot in info.claimed_slots} - living)) if info else (),
            waiting=info.pending_step_count if info else 0,
        )


def _runs(instance: dg.DagsterInstance) -> Iterator[UnfinishedRun]:
    records = instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED), limit=_MOST_RUNS, ascending=True)
    for record in records:
        run = record.dagster_run
        created = record.create_timestamp
        since = datetime.fromtimestamp(record.start_time, UTC) if record.start_time else created.replace(tzinfo=UTC)
        yield UnfinishedRun(run.run_id, run.status.value, since, _limit(instance, run), is_dead(run))


def _limit(instance: dg.DagsterInstance, run: dg.DagsterRun) -> timedelta | None:
    """Return how long a run may be in its state, as Dagster's monitoring has it."""
    if run.status in (dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.NOT_STARTED):
        return timedelta(seconds=instance.run_monitoring_start_timeout_seconds)
    said = run.tags.get("dagster/max_runtime", run.tags.get("dagster/max_runtime_seconds", ""))
    seconds = float(said) if said.isdecimal() else float(instance.run_monitoring_max_runtime_seconds)
    return timedelta(seconds=seconds) if seconds else None


def _tickers(instance: dg.DagsterInstance, names: Collection[str]) -> Iterator[Ticker]:
    chosen: dict[str, Literal["on", "off"]] = {"RUNNING": "on", "STOPPED": "off"}
    for state in instance.all_instigator_state():
        if state.instigator_name not in names:
            continue
        ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=2)
        finished = next((tick for tick in ticks if tick.status.name != "STARTED"), None)
        yield Ticker(
            name=state.instigator_name,
            chosen=chosen.get(state.status.name),
            ticked_at=datetime.fromtimestamp(finished.timestamp, UTC) if finished else None,
            failure=_told(finished.error) if finished and finished.is_failure and finished.error else None,
        )


def _refused(error: dg.DagsterInvalidConfigError) -> str:
    """Return why settings are refused, without the values, which may be secret, and all that might have stood there."""
    said_first = " ".join(str(error.errors[0].message).split())
    for all_else in (" Expected: ", " Stack Trace: "):
        said_first = said_first.partition(all_else)[0]
    return f"Its settings are refused: {_VALUE.sub('A value of type', said_first).rstrip('.')}."


def _told(error: SerializableErrorInfo) -> str:
    """Return the first line of the error that Dagster met, without the name of its class."""
    while error.message.startswith("dagster.") and error.cause is not None:
        error = error.cause
    line = (error.message.strip().splitlines() or ["no reason given"])[0]
    return _CLASS.sub("", line)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _without_creating(ref: InstanceRef) -> InstanceRef:
    """Return an instance that makes no tables where there are none."""
    storage = ref.storage_data
    if storage is None or storage.class_name != _POSTGRES:
        return ref
    config = {**yaml.safe_load(storage.config_yaml), "should_autocreate_tables": False}
    return ref._replace(
        storage_data=ConfigurableClassData(storage.module_name, storage.class_name, yaml.safe_dump(config))
    )


def _storage(ref: InstanceRef, folder: Path, connections: Connections) -> tuple[str, str | None]:
    """Return where the tables of an instance are, and why there is nothing in them yet.

    Raises:
        ConfigError: its database is named without a driver that Dagster can use.
        DatabaseError: its database does not answer.
    """
    data = ref.storage_data
    name = data.class_name if data else ""
    if name == _SQLITE:
        empty = not (folder / "history" / "runs.db").exists()
        return f"SQLite files in {folder}", f"Nothing was ever stored in {folder}." if empty else None
    try:
        url = getattr(ref.storage, "postgres_url", None)
    except (ArgumentError, ValueError):
        # Not shown: what cannot be read cannot be told apart from its password either.
        msg = (
            "The URL of its storage cannot be read: write postgresql+psycopg2://user:password@host:5432/database, and "
            "what is special in the password as %40 for @."
        )
        raise ConfigError(msg) from None
    if data is None or name != _POSTGRES or url is None or "auth_provider" in data.config_yaml:
        return name, None
    parsed = make_url(url)
    if problem := driver_problem(parsed.drivername, sa.__version__):
        raise ConfigError(problem)
    engine = connections.engine(
        parsed.set(drivername="postgresql+psycopg").render_as_string(hide_password=False), ours=False
    )
    with reading(engine) as connection:
        found = sum(connection.scalar(_EXISTS, {"name": table}) for table in _TABLES)
    where = f"the database {address(parsed)}"
    return where, f"There are no tables of Dagster yet in {where}." if found < len(_TABLES) else None
