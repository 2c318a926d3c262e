"""Facts about one source: its store, how it is followed, its windows and what its scores cover."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from stepacc_core.errors import StepaccError
from stepacc_dagster.automation import schedule_name
from stepacc_dagster.doctor.coverage import AnnotatedKind, Coverage, Sample
from stepacc_dagster.doctor.following import Following, Store
from stepacc_dagster.doctor.gather import queries
from stepacc_dagster.doctor.gather.connections import Connections, reading, said
from stepacc_dagster.doctor.instance import Instance
from stepacc_dagster.doctor.windows import Due, WindowFact, Windows
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.partitions import partitions_of
from stepacc_dagster.resources import url_from_environment
from stepacc_dagster.sensors import sensor_name, wanted_of
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.due import WindowState, window_states
from stepacc_dagster.stores.factory import build_store
from stepacc_dagster.stores.margins import unnoticed


@dataclass(frozen=True, slots=True)
class Work:
    """What the tables of stepacc say of a source.

    Attributes:
        now: by the database's clock.
        checked_at: when its store was last asked for changes.
        windows: where its windows stand.
        coverage: what its scores cover, by version and config.
        open_window: the oldest of its windows in which something had not settled; None where all had.
    """

    now: datetime
    checked_at: datetime | None
    windows: Windows
    coverage: Sequence[Coverage]
    open_window: str | None


def gather_store(source: Source, own: sa.Engine | None, connections: Connections) -> Store:
    """Try to open a source's store.

    Args:
        source: the source.
        own: stepacc's own database, where it can be used.
        connections: for stores in other databases.
    """
    problem = None
    try:
        engine = connections.engine(url_from_environment(source.store_url_env)) if source.store_url_env else own
        if engine is None:
            problem = "Its store is in the database of stepacc, which cannot be used."
        else:
            with build_store(source.store, engine, source.name).open():
                pass
    except (StepaccError, sa.exc.SQLAlchemyError) as error:
        problem = said(error)
    return Store(source.store.kind, source.store.table_name, problem, unnoticed(source.store))


def gather_following(source: Source, instances: Sequence[Instance], work: Work | None, now: datetime) -> Following:
    """Look at what instances say of a source's sensor and schedule."""
    sensor, schedule = ticker_names(source)
    tickers = tuple(
        ticker for instance in instances for ticker in instance.tickers if ticker.name in {sensor, schedule}
    )
    return Following(
        now=now,
        source=source.name,
        sensor=sensor,
        schedule=schedule,
        enabled=source.follow.enabled,
        interval=timedelta(seconds=source.follow.interval_seconds),
        tickers=tickers,
        has_daemon=any(instance.has_daemon for instance in instances),
        checked_at=work.checked_at if work else None,
    )


def ticker_names(source: Source) -> tuple[str, str]:
    """Return the names of a source's sensor and schedule."""
    return sensor_name(source), schedule_name(source)


def gather_work(engine: sa.Engine, source: Source, evaluator: Evaluator, others: Collection[str] | None) -> Work:
    """Read what is noted of each window of a source for one metric; `others` is as in `queries.coverage_of`."""
    partitions = partitions_of(source)
    first, last = partitions.get_first_partition_key(), partitions.get_last_partition_key()
    with reading(engine) as conn:
        now = conn.execute(sa.text("SELECT now()")).scalar_one()
        states = window_states(conn, wanted_of(source, evaluator, [first, last])) if first and last else []
        windows = Windows(
            source.name,
            first or source.start_date,
            last or source.start_date,
            known=tuple(_window(state) for state in states),
            outside=tuple(queries.windows_outside(conn, source.name, first or "", last or "")),
            followed=False,
            rescored=source.follow.rescore,
            has_spans=queries.has_landed(conn, source.name) if source.store.kind == "otel_spans" else None,
        )
        return Work(
            now,
            queries.checked_at(conn, source.name),
            windows,
            queries.coverage_of(conn, source.name, evaluator, others),
            next((state.window_key for state in states if state.unsettled), None),
        )


def gather_sample(
    engine: sa.Engine, source: Source, evaluator: Evaluator, work: Work
) -> tuple[tuple[Coverage, ...], Sample]:
    """Read the newest traces and scores of a source: so many that it takes a moment, however many there are.

    The first answer is the coverage in `work`, with the rows that are there.
    """
    with reading(engine) as conn:
        traces, gone = queries.count_traces(conn, source.name)
        reasons, hint = queries.newest_scores(conn, source, evaluator)
        oldest = None
        if work.open_window:
            oldest = queries.oldest_open(conn, source.name, work.open_window, source.settling.at(work.now))
        sample = Sample(
            traces=traces,
            gone=gone,
            oldest_open=oldest,
            annotated=tuple(_annotated(conn, source, evaluator)),
            reasons=tuple(reasons),
            hint=hint,
        )
        return queries.with_rows(conn, source.name, evaluator, work.coverage), sample


def _annotated(conn: sa.Connection, source: Source, evaluator: Evaluator) -> Iterator[AnnotatedKind]:
    key = evaluator.metric.manifest.annotation_key
    if key and not getattr(evaluator.config, key, None):
        for kind, otherwise in source.partition_types.items():
            yield AnnotatedKind(kind, otherwise == "skip", tuple(queries.annotated_of(conn, source.name, kind, key)))


def _window(state: WindowState) -> WindowFact:
    due: Due | None = None
    if state.ingest_due:
        due = "ingest" if state.ingested_at is None else "ingest again"
    elif state.score_due:
        due = "score by the new version" if state.other_version else "score"
    again = state.request_again_at
    asked = state.asked and again is not None and again > state.now
    return WindowFact(state.window_key, due, asked, state.problem)
