"""The demo's main job: land, annotate, evaluate through Dagster, and read the scores back."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import sqlalchemy as sa

from stepacc_core.model import RawSpan
from stepacc_core.redaction import RedactionSettings
from stepacc_dagster.database import check_reachable, connect_engine
from stepacc_dagster.definitions import defs_folder
from stepacc_dagster.demo import data
from stepacc_dagster.local.evaluation import local_evaluation
from stepacc_dagster.local.outcome import RunOutcome
from stepacc_dagster.redaction.doors import door_redactor
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.current import CurrentScore
from stepacc_dagster.storage.expectations import not_erased
from stepacc_dagster.storage.raw_spans import land_spans
from stepacc_dagster.storage.schema import upgrade

_ORIGIN = "stepacc demo"
_SAID_BY_OTHERS = sa.text("""
    SELECT DISTINCT target_type, target_id, partition_type, key FROM stepacc.annotations
    WHERE source = :source AND origin <> :origin
""")
_STARTS = sa.text("""
    SELECT trace_id, min(start_time_unix_nano) FROM stepacc.otel_spans
    WHERE source = :source AND trace_id = ANY(:trace_ids) GROUP BY trace_id
""")


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """What the demo did and found."""

    runs: list[RunOutcome]
    scores: list[CurrentScore]


def run_demo(url: str, say: Callable[[str], None], *, today: date | None = None) -> DemoOutcome:
    """Run the demo on a database; running it again finds everything there and changes nothing.

    What somebody has changed since, an annotation or the source's settings, stays as it is.

    Args:
        url: the database.
        say: takes a sentence about each thing done.
        today: the day, UTC, on which the traces come to lie two days back; by default the clock's.
    """
    engine = connect_engine(url)
    try:
        check_reachable(engine)
        upgrade(engine)
        days = _land(engine, say, today or datetime.now(UTC).date())
        with local_evaluation(data.SOURCE) as evaluation:
            keys = evaluation.partition_keys(days[0].isoformat(), days[-1].isoformat())
            say(f"Evaluating {len(keys)} daily partitions, {keys[0]} to {keys[-1]}, in a Dagster run ...")
            runs = list(evaluation.materialize(keys))
            scores = evaluation.scores(keys, evaluation.metrics[0])
    finally:
        engine.dispose()
    return DemoOutcome(runs, scores)


def _land(engine: sa.Engine, say: Callable[[str], None], today: date) -> list[date]:
    recorded, redactor = data.recorded_spans(), door_redactor(engine, RedactionSettings())
    with engine.begin() as connection:
        spans = data.moved(recorded, _shift(connection, recorded, today))
        landed = land_spans(connection, data.SOURCE, spans, redactor)
        entries = _unsaid(
            connection, [AnnotationEntry.of(a, source=data.SOURCE, origin=_ORIGIN) for a in data.annotations()]
        )
        added = add_annotations(connection, not_erased(connection, data.SOURCE, entries))
    days = data.days_of(spans)
    _write_source(days[0])
    say(f"Landed {len(spans)} spans of recorded traces ({landed.new} new), on {len(days)} days.")
    say(f"Imported {len(added)} annotations ({sum(revision.new for revision in added)} new).")
    return days


def _unsaid(connection: sa.Connection, entries: list[AnnotationEntry]) -> list[AnnotationEntry]:
    """Return the annotations of targets that nobody but the demo has said anything of."""
    said = {tuple(row) for row in connection.execute(_SAID_BY_OTHERS, {"source": data.SOURCE, "origin": _ORIGIN})}
    return [each for each in entries if (each.target_type, each.target_id, each.partition_type, each.key) not in said]


def _shift(connection: sa.Connection, recorded: list[RawSpan], today: date) -> timedelta:
    """Return by how many days to move the traces: to where they are already, else so that they end two days ago.

    Where they are counts only if that is over: a clock that was wrong must not leave them in the future.
    """
    days = data.days_of(recorded)
    wanted = today - timedelta(days=data.DAYS_AGO) - days[-1]
    starts: dict[str, int] = {}
    for span in recorded:
        if start := span.start_time_unix_nano:
            starts[span.trace_id] = min(start, starts.get(span.trace_id, start))
    there = connection.execute(_STARTS, {"source": data.SOURCE, "trace_ids": list(starts)})
    shifts = [_day(start) - _day(starts[trace_id]) for trace_id, start in there]  # of those that nobody erased
    return min([wanted, *shifts])


def _day(start_ns: int) -> date:
    return datetime.fromtimestamp(start_ns // 1_000_000_000, UTC).date()


def _write_source(start: date) -> None:
    """Write the source's `defs.yaml` in one go, since a Dagster process may be reading it."""
    folder = defs_folder() / data.SOURCE
    written = folder / "defs.yaml"
    if written.exists() and not data.is_as_shipped(written.read_text(encoding="utf-8")):
        return
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / f".defs.yaml.{os.getpid()}"
    scratch.write_text(data.defs_yaml(start), encoding="utf-8")
    scratch.replace(written)
