"""Evaluating local sources in this process: real Dagster runs on the local instance, without a daemon."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg
import sqlalchemy as sa
from dagster_postgres.utils import DagsterPostgresException

from stepacc_core.errors import ConfigError
from stepacc_dagster.automation import RANGE_END, RANGE_START, job_name, run_tags
from stepacc_dagster.backfills import Planned
from stepacc_dagster.catalog import SourceKeys
from stepacc_dagster.component import build_evaluation_definitions
from stepacc_dagster.daemon_backfills import launch
from stepacc_dagster.database import open_database
from stepacc_dagster.definitions import local_settings
from stepacc_dagster.errors import RunStorageError
from stepacc_dagster.evaluators import evaluator_of, evaluators_of
from stepacc_dagster.failures import is_transient
from stepacc_dagster.ingest import observe
from stepacc_dagster.local.dead_runs import end_dead_runs, process_tags
from stepacc_dagster.local.home import local_home
from stepacc_dagster.local.instance import local_instance
from stepacc_dagster.local.interrupts import interrupts_kept
from stepacc_dagster.local.kept_connections import kept_connections
from stepacc_dagster.local.outcome import RunOutcome, first_error
from stepacc_dagster.local.source import local_source
from stepacc_dagster.opening import opened_store
from stepacc_dagster.partitions import partitions_of
from stepacc_dagster.pools import ensure_pool_limit
from stepacc_dagster.requests import neighbours
from stepacc_dagster.sensors import wanted_of
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.comparison import VersionScores, compare_versions
from stepacc_dagster.storage.current import CurrentScore, ScoreSelection, current_scores
from stepacc_dagster.storage.due import WindowState, window_states
from stepacc_dagster.storage.opening import ready_engine
from stepacc_dagster.storage.sessions import session_homes
from stepacc_dagster.windows import spanned

_LOCATION = "__repository__@stepacc"
"""The code location of `workspace.yaml`, in whose jobs and timeline the UI then shows runs of commands too."""
_QUIET: dict[str, Any] = {"loggers": {"silent": {}}}  # the command says itself what failed, and once


class LocalEvaluation:
    """A source ready to be evaluated on an open local instance.

    Args:
        source: the source.
        instance: the instance.
        engine: of the database of stepacc.
        metric: name of the one metric, or of a member of its family, to evaluate by; all of the source where left out.
    """

    def __init__(
        self, source: Source, instance: dg.DagsterInstance, engine: sa.Engine, metric: str | None = None
    ) -> None:
        self.source = source
        self.instance = instance
        self._engine = engine
        every = evaluators_of(source)
        self._evaluators = every if metric is None else (evaluator_of(source, metric),)
        self._keys = SourceKeys(source, every)
        self._definitions = dg.Definitions.merge(local_settings(), build_evaluation_definitions(source, every))
        self._job = self._definitions.resolve_job_def(job_name(source))

    def partition_keys(self, first: str | None, last: str | None) -> list[str]:
        """Return the partition keys from `first` to `last`, both included; the ends of the source where None.

        Raises:
            ConfigError: a key is no partition of the source, or the range is empty.
        """
        keys = partitions_of(self.source).get_partition_keys()
        if not keys:
            msg = f"Source `{self.source.name}` has no partition yet; its start_date is {self.source.start_date}."
            raise ConfigError(msg)
        for key in (first, last):
            if key is not None and key not in keys:
                msg = f"{key!r} is no partition of source `{self.source.name}`; its partitions are {spanned(keys)}."
                raise ConfigError(msg)
        chosen = [key for key in keys if (first or keys[0]) <= key <= (last or keys[-1])]
        if not chosen:
            msg = f"There is no partition from {first} to {last}; write the earlier key first."
            raise ConfigError(msg)
        return chosen

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(evaluator.name for evaluator in self._evaluators)

    def scores(self, keys: Sequence[str], metric: str | None = None) -> list[CurrentScore]:
        """Return the current scores by a metric in the windows from the first to the last key.

        Of a family they are those of its headline. `metric` may be left out where there is one.
        """
        [evaluator] = [each for each in self._evaluators if metric in (None, each.name)]
        selection = ScoreSelection(
            self.source.name,
            evaluator.headline,
            evaluator.metric.manifest.version,
            evaluator.config_hash,
            first=keys[0],
            last=keys[-1],
        )
        with self._engine.connect() as connection:
            return current_scores(connection, selection)

    def ingest(self, keys: Sequence[str]) -> Iterator[RunOutcome]:
        """Ingest partitions, as many a run as the source allows."""
        for chunk in self._chunks(keys):
            yield self._run(chunk, [self._keys.canonical_traces])

    def materialize(self, keys: Sequence[str]) -> Iterator[RunOutcome]:
        """Ingest and score partitions; the whole range is ingested before any of it is scored.

        A partition that cannot be ingested keeps no other from being scored. At the end the home windows, outside the
        range, of sessions that have traces in it are scored again.
        """
        chunks = self._chunks(keys)
        if len(chunks) == 1:
            outcome = self._run(chunks[0], [self._keys.canonical_traces, *self._keys.scored(self.metrics)])
            yield outcome
            if not outcome.success:
                yield from self.score(self._ingested_and_due(keys))
        else:
            yield from self.ingest(keys)
            yield from self.score(keys)
        yield from self.score(self._homes_outside(keys))

    def score(self, keys: Iterable[str], metrics: Sequence[str] | None = None) -> Iterator[RunOutcome]:
        """Score partitions as they were ingested last, neighbouring ones together; by all metrics or by some."""
        for run in self._neighbours(keys):
            for chunk in self._chunks(run):
                yield self._run(chunk, self._keys.scored(metrics or self.metrics))

    def bring_up_to_date(self, planned: Sequence[Planned]) -> Iterator[RunOutcome]:
        """Ingest what is to be ingested, then score all, and then what changed by it elsewhere.

        That is the home of a session that grew, and the window that a trace has left for an earlier one.
        """
        ingested = [window.key for window in planned if window.ingest]
        due_before = set(self._ingested_and_due(self.all_keys())) if ingested else set()
        for run in self._neighbours(ingested):
            yield from self.ingest(run)
        keys = [window.key for window in planned]
        for metrics in dict.fromkeys(window.metrics for window in planned):
            yield from self.score([window.key for window in planned if window.metrics == metrics], metrics)
        if ingested:
            due = set(self._ingested_and_due(self.all_keys())) - set(keys)
            yield from self.score(due - due_before.difference(self._homes_outside(sorted(ingested))))

    def all_keys(self) -> list[str]:
        """Return all partition keys of the source, oldest first."""
        return list(partitions_of(self.source).get_partition_keys())

    def states(self, keys: Sequence[str]) -> dict[str, list[WindowState]]:
        """Return by metric where the windows from the first to the last key stand, those that ever had anything in."""
        with self._engine.connect() as connection:
            return {
                evaluator.name: window_states(connection, wanted_of(self.source, evaluator, keys))
                for evaluator in self._evaluators
            }

    def observe(self) -> tuple[str, ...]:
        """Ask the store what changed, and note it; return the windows.

        Raises:
            UnfollowableError: the store tells nothing of what changed in it.
        """
        with opened_store(self.source, self._engine) as store:
            return observe(self._engine, store, self.source)

    def versions(self, keys: Sequence[str]) -> dict[str, list[VersionScores]]:
        """Compare the current scores of each version and config in the windows from the first to the last key.

        Returns:
            What was compared, by the name that the rows have: a metric's, or that of a member of its family.
        """
        with self._engine.connect() as connection:
            return {
                name: compare_versions(
                    connection,
                    self.source.name,
                    name,
                    metric_version=evaluator.metric.manifest.version,
                    config_hash=evaluator.config_hash,
                    first=keys[0],
                    last=keys[-1],
                )
                for evaluator in self._evaluators
                for name in evaluator.row_names
            }

    def launch(self, planned: Sequence[Planned], title: str) -> str:
        """Ask the daemon for a backfill of these windows, and return its id."""
        size = self.source.max_partitions_per_run
        tags = run_tags(self.source, self._evaluators, trigger="backfill", partitions=size)
        self._ensure_pool_limits()
        return launch(self.instance, self._definitions, self._keys, planned, self.all_keys(), tags=tags, title=title)

    @property
    def title(self) -> str:
        """Names and versions of the metrics."""
        return " and ".join(f"{each.name} {each.metric.manifest.version}" for each in self._evaluators)

    def _ingested_and_due(self, keys: Sequence[str]) -> list[str]:
        """Return the windows that were ingested and not tried to be scored since; none where the database is away."""
        try:
            states = self.states(keys)
        except sa.exc.DBAPIError as error:
            if is_transient(error):
                return []
            raise
        due = [s for found in states.values() for s in found if s.score_due and not s.ingest_due and not s.problem]
        return sorted({state.window_key for state in due})

    def _neighbours(self, keys: Iterable[str]) -> list[list[str]]:
        return neighbours(keys, self.all_keys())

    def _homes_outside(self, keys: Sequence[str]) -> list[str]:
        if "session" not in self.source.partition_types:
            return []
        with self._engine.connect() as connection:
            homes = session_homes(connection, self.source.name, first=keys[0], last=keys[-1])
        known = set(partitions_of(self.source).get_partition_keys())
        return sorted((homes - set(keys)) & known)

    def _chunks(self, keys: Sequence[str]) -> list[Sequence[str]]:
        size = self.source.max_partitions_per_run
        return [keys[start : start + size] for start in range(0, len(keys), size)]

    def _run(self, keys: Sequence[str], assets: Sequence[dg.AssetKey]) -> RunOutcome:
        end_dead_runs(self.instance)
        self._ensure_pool_limits()
        with interrupts_kept(), warnings.catch_warnings():
            # Dagster's own calls of what newer versions of Python deprecate are nothing that a user can mend.
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"dagster\b")
            result = self._executed(keys, assets)
        return RunOutcome(result.run_id, keys[0], keys[-1], len(keys), result.success, first_error(result))

    def _ensure_pool_limits(self) -> None:
        for evaluator in self._evaluators:
            ensure_pool_limit(self.instance, evaluator.metric.manifest)

    def _executed(self, keys: Sequence[str], assets: Sequence[dg.AssetKey]) -> dg.ExecuteInProcessResult:
        tags = {
            **run_tags(self.source, self._evaluators, trigger="command", partitions=len(keys)),
            **process_tags(),
            ".dagster/repository": _LOCATION,
            RANGE_START: keys[0],
            RANGE_END: keys[-1],
        }
        try:
            return self._job.execute_in_process(
                instance=self.instance, run_config=_QUIET, asset_selection=list(assets), tags=tags, raise_on_error=False
            )
        except (DagsterPostgresException, sa.exc.DBAPIError) as error:
            # Dagster keeps its runs in a database too, and cannot go on with a run that it cannot write down.
            msg = (
                f"The database that keeps Dagster's runs was lost during the run over {spanned(keys)} "
                f"({str(error).splitlines()[0]}). What was stored before is whole: start the database, and run the "
                "command again."
            )
            raise RunStorageError(msg) from error


@contextmanager
def local_evaluation(source_name: str | None = None, metric: str | None = None) -> Iterator[LocalEvaluation]:
    """Open the database and the local instance, and make a source ready, with all its metrics or the one named.

    Raises:
        ConfigError: no source of that name has a `defs.yaml`, or there are several and none was named; or the source is
            not scored by that metric.
        DatabaseError, SchemaError: the database cannot be used.
    """
    source = local_source(source_name)
    if metric is not None:
        evaluator_of(source, metric)  # before a database is started
    with (
        open_database() as url,
        ready_engine(url) as engine,
        local_instance(local_home(), url) as instance,
        kept_connections(instance),
    ):
        yield LocalEvaluation(source, instance, engine, metric)
