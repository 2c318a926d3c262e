"""An examination from one end to the other: what is looked at, in which order, and what hides nothing else."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from stepacc_core.errors import StepaccError
from stepacc_dagster.database import (
    DAGSTER_URL_VARIABLE,
    URL_VARIABLE,
    dagster_storage_url,
    database_url,
    open_database,
)
from stepacc_dagster.definitions import defs_folder, load_source, source_files
from stepacc_dagster.doctor.coverage import check_coverage
from stepacc_dagster.doctor.database import Database, check_database
from stepacc_dagster.doctor.findings import Finding, Section, of_metrics
from stepacc_dagster.doctor.following import check_following, check_store
from stepacc_dagster.doctor.gather import queries
from stepacc_dagster.doctor.gather.connections import Connections, reading, said
from stepacc_dagster.doctor.gather.database import gather_database
from stepacc_dagster.doctor.gather.instance import gather_instance
from stepacc_dagster.doctor.gather.source import (
    Work,
    gather_following,
    gather_sample,
    gather_store,
    gather_work,
    ticker_names,
)
from stepacc_dagster.doctor.instance import Instance, check_instance
from stepacc_dagster.doctor.windows import check_windows
from stepacc_dagster.doctor.wording import listed
from stepacc_dagster.errors import DatabaseError
from stepacc_dagster.evaluators import Evaluator, evaluators_of
from stepacc_dagster.failures import address
from stepacc_dagster.local.binaries import find_binaries
from stepacc_dagster.local.home import local_home
from stepacc_dagster.local.instance import dagster_home, instance_environment
from stepacc_dagster.pools import pool_of
from stepacc_dagster.resources import url_from_environment
from stepacc_dagster.sources import Source


@dataclass(frozen=True, slots=True)
class Loaded:
    """A `defs.yaml`: its source and evaluators, or why there is none."""

    path: Path
    source: Source | None = None
    evaluators: tuple[Evaluator, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A database of stepacc: where it is, what was found, and an engine where it can be used."""

    about: str
    found: Database
    engine: sa.Engine | None = None
    url: str | None = None


def examine(only: str | None = None) -> Iterator[Section]:
    """Examine the databases, the Dagster instances and the sources of this machine, and tell section by section.

    Args:
        only: name of the one source to examine; all where left out.
    """
    loaded = _sources()
    with ExitStack() as stack:
        connections = Connections(stack)
        main = _main_database(stack, connections)
        databases = {URL_VARIABLE: main, **_other_databases(loaded, connections)}
        for opened in databases.values():
            yield Section(opened.about, tuple(check_database(opened.found)))
        instances = list(_instances(loaded, main, connections))
        for about, instance in instances:
            yield Section(about, tuple(check_instance(instance)))
        yield from _about_sources(loaded, databases, [instance for _, instance in instances], connections, only)


def _sources() -> list[Loaded]:
    loaded: dict[str, Loaded] = {}
    for path in source_files(defs_folder()):
        try:
            source = load_source(path)
            one = Loaded(path, source, evaluators_of(source))
            name = source.name
            if name in loaded:
                one = Loaded(path, problem=f"{path}: source `{name}` has another defs.yaml, {loaded[name].path}.")
                name = str(path)
        except Exception as error:  # noqa: BLE001 (a template or a metric's package may fail in any way)
            one, name = Loaded(path, problem=said(error)), str(path)
        loaded[name] = one
    return list(loaded.values())


def _main_database(stack: ExitStack, connections: Connections) -> Opened:
    """Open the database that commands use; a local server that does not run is started, but none is created."""
    given = os.environ.get(URL_VARIABLE)
    about = f"Database of {URL_VARIABLE}" if given else "Database on the local server"
    try:
        if not given and not (local_home() / "postgres" / "PG_VERSION").exists():
            find_binaries()
            return Opened(about, Database(absent=f"{URL_VARIABLE} is not set, and there is no local server yet."))
        url = database_url() or stack.enter_context(open_database())
    except (DatabaseError, OSError) as error:
        return Opened(about, Database(problem=said(error)))
    return _opened(about, url, connections)


def _other_databases(loaded: Sequence[Loaded], connections: Connections) -> dict[str, Opened]:
    names = {one.source.database_url_env for one in loaded if one.source} - {URL_VARIABLE}
    found: dict[str, Opened] = {}
    for name in sorted(names):
        about = f"Database of {name}"
        try:
            found[name] = _opened(about, url_from_environment(name), connections)
        except StepaccError as error:
            found[name] = Opened(about, Database(problem=said(error)))
    return found


def _opened(about: str, url: str, connections: Connections) -> Opened:
    where = f"{about}, {address(make_url(url))}"
    try:
        engine = connections.engine(url)
        found = gather_database(engine)
    except (StepaccError, sa.exc.SQLAlchemyError) as error:
        return Opened(where, Database(problem=said(error)), url=url)
    return Opened(where, found, engine if found.usable else None, url)


def _instances(loaded: Sequence[Loaded], main: Opened, connections: Connections) -> Iterator[tuple[str, Instance]]:
    """Look at the instance of stepacc's own commands, and at that of `DAGSTER_HOME` where it is another."""
    manifests = [evaluator.metric.manifest for one in loaded for evaluator in one.evaluators]
    pools = {pool_of(manifest): manifest.execution.max_concurrency for manifest in manifests}
    names = {name for one in loaded if one.source for name in ticker_names(one.source)}
    look = partial(gather_instance, connections=connections, pools=pools, tickers=names)
    own = dagster_home(local_home())
    yield f"Dagster instance of stepacc's commands, {own}", _own_instance(own, main, look)
    given = Path(os.environ["DAGSTER_HOME"]).expanduser() if os.environ.get("DAGSTER_HOME") else None
    if given is not None and given.absolute() != own:
        missing = None if given.is_dir() else f"DAGSTER_HOME is {str(given)!r}, which is no folder."
        instance = Instance(datetime.now(UTC), problem=missing) if missing else look(given, environment={})
        yield f"Dagster instance of DAGSTER_HOME, {given}", instance


def _own_instance(folder: Path, main: Opened, look: Callable[..., Instance]) -> Instance:
    now = datetime.now(UTC)
    if not (folder / "dagster.yaml").exists():
        return Instance(now, absent=f"There is no Dagster instance in {folder} yet.")
    try:
        if main.url is not None:
            environment = instance_environment(local_home(), main.url)
        elif os.environ.get(DAGSTER_URL_VARIABLE):
            environment = {DAGSTER_URL_VARIABLE: dagster_storage_url("")}
        else:
            return Instance(now, problem="Its tables are in the database above, which cannot be used.")
    except DatabaseError as error:
        return Instance(now, problem=said(error))
    return look(folder, environment=environment)


def _about_sources(
    loaded: Sequence[Loaded],
    databases: dict[str, Opened],
    instances: Sequence[Instance],
    connections: Connections,
    only: str | None,
) -> Iterator[Section]:
    for one in loaded:
        if one.source is None:
            if only in (None, one.path.parent.name):
                yield Section(f"Source in {one.path}", (_not_loaded(one),))
        elif only in (None, one.source.name):
            findings = _about_source(one, databases[one.source.database_url_env], instances, connections)
            yield Section(f"Source {one.source.name}", tuple(findings))
    yield from _about_names(loaded, databases, only)


def _not_loaded(one: Loaded) -> Finding:
    return Finding(
        "error",
        one.problem or "",
        "Correct the file. Commands that name another source, or mean all, go on with the others; a Dagster project of "
        "your own that has the file loads nothing.",
    )


def _about_source(
    one: Loaded, database: Opened, instances: Sequence[Instance], connections: Connections
) -> Iterator[Finding]:
    source = one.source
    if source is None:
        return
    named = " and ".join(f"{each.name} {each.metric.manifest.version}" for each in one.evaluators)
    yield Finding("ok", f"{one.path} loads: {source.partitions}, scored by {named}.")
    yield from check_store(gather_store(source, database.engine, connections))
    works: dict[str, Work] = {}
    if database.engine:
        try:
            works = {
                each.name: gather_work(database.engine, source, each, _told_elsewhere(one.evaluators, place))
                for place, each in enumerate(one.evaluators)
            }
        except (StepaccError, sa.exc.SQLAlchemyError) as error:
            yield _not_read("windows", error)
    now = datetime.now(UTC)
    work = next(iter(works.values()), None)
    if any(not instance.problem for instance in instances):
        following = gather_following(source, instances, work, now)
        yield from check_following(following)
        followed = following.is_on
    else:
        followed = False
    if database.engine is None:
        return
    found = {
        each.name: list(_about_metric(database.engine, source, each, works[each.name], followed=followed, now=now))
        for each in (one.evaluators if works else ())
    }
    yield from of_metrics(found)


def _about_metric(  # noqa: PLR0913 (what is known by then)
    engine: sa.Engine, source: Source, evaluator: Evaluator, work: Work, *, followed: bool, now: datetime
) -> Iterator[Finding]:
    yield from check_windows(replace(work.windows, followed=followed))
    try:
        coverage, sample = gather_sample(engine, source, evaluator, work)
    except (StepaccError, sa.exc.SQLAlchemyError) as error:
        yield _not_read("newest traces and scores", error)
        return
    yield from check_coverage(source.name, coverage, sample, now)


def _told_elsewhere(evaluators: Sequence[Evaluator], place: int) -> list[str] | None:
    """Return the metrics that are not told of with the one at `place`; None: it is told of alone.

    Metrics that the source was scored by before are told of with the first.
    """
    return [each.name for each in evaluators[1:]] if place == 0 else None


def _not_read(what: str, error: Exception) -> Finding:
    return Finding(
        "error",
        f"Its {what} could not be read: {said(error)}",
        "Mend what is named; if it took too long, run ANALYZE on the tables of the schema stepacc, and look at the "
        "load of the server.",
    )


def _about_names(loaded: Sequence[Loaded], databases: dict[str, Opened], only: str | None) -> Iterator[Section]:
    """Tell of names that are configured and not there, and of those that are there and not configured."""
    configured = {one.source.name for one in loaded if one.source}
    folder = defs_folder()
    if only is not None and only not in configured | {one.path.parent.name for one in loaded if not one.source}:
        known = listed(sorted(configured), 20) or "none"
        what = f"There is no source {only!r} in {folder}; configured there are: {known}."
        remedy = (
            f"Name one of these, or describe {only!r} in a defs.yaml in a folder there; STEPACC_DEFS names another."
        )
        yield Section(f"Source {only}", (Finding("error", what, remedy),))
    elif only is None and not loaded:
        what = f"No source is configured in {folder}."
        remedy = "Describe one in a defs.yaml in a folder there (STEPACC_DEFS names another); `stepacc demo` makes one."
        yield Section("Sources", (Finding("note", what, remedy),))
    main = databases[URL_VARIABLE]
    if only is None and main.engine and (unknown := sorted(_names_in(main.engine) - configured)):
        what = f"The database has traces of sources that are not configured in {folder}: {listed(unknown, 20)}."
        remedy = (
            "Describe them in a defs.yaml; if a name was mistyped, import the traces once more with the right "
            "--source. There is nothing to do where another project evaluates them."
        )
        yield Section("Other sources", (Finding("note", what, remedy),))


def _names_in(engine: sa.Engine) -> set[str]:
    try:
        with reading(engine) as connection:
            return queries.sources_in(connection)
    except sa.exc.SQLAlchemyError:
        return set()  # the sources have told by then what is wrong with their tables
