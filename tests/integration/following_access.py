"""What the tests of following changes do: look as the sensor does, and run what it asks for."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from stepacc_dagster import build_evaluation_definitions
from stepacc_dagster.automation import RANGE_END, RANGE_START, job_name
from stepacc_dagster.definitions import local_settings
from stepacc_dagster.partitions import partitions_of
from stepacc_dagster.resources import StepaccDatabase, resource_key
from stepacc_dagster.sources import MetricChoice, Source
from tests.integration.evaluation_access import Workshop, support_source

ROUNDS = 8
"""Looks after which everything has to be up to date: a run may show that other windows are to be scored again."""


@dataclass(frozen=True)
class Asked:
    """A run that the sensor asked for: its windows, and whether they are ingested before they are scored."""

    keys: tuple[str, ...]
    ingest: bool
    request: dg.RunRequest = field(compare=False, repr=False)


class Follower:
    """A source with its sensor, on a workshop's instance and database."""

    def __init__(self, workshop: Workshop, **settings: Any) -> None:
        chosen = {name: settings.pop(name) for name in ("name", "version", "config") if name in settings}
        self.workshop = workshop
        metric = {} if "metrics" in settings else {"metric": MetricChoice(**chosen)}
        self.source: Source = support_source(**metric, **settings)
        definitions = build_evaluation_definitions(self.source)
        self.repository = definitions.get_repository_def()
        self.sensor = self.repository.get_sensor_def(f"{self.source.name}_changes")
        self.job = dg.Definitions.merge(local_settings(), definitions).resolve_job_def(job_name(self.source))

    def look(self) -> list[Asked]:
        """Evaluate the sensor once, and return what it asks for; nothing is run."""
        with dg.build_sensor_context(
            self.workshop.instance,
            repository_def=self.repository,
            resources={resource_key(self.source): StepaccDatabase()},
        ) as context:
            data = self.sensor.evaluate_tick(context)
        return [self._asked(request) for request in data.run_requests or []]

    def run(self, asked: Asked) -> dg.ExecuteInProcessResult:
        """Execute a run that was asked for, as the daemon's launcher would."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"dagster\b")
            return self.job.execute_in_process(
                instance=self.workshop.instance,
                partition_key=asked.request.partition_key,
                tags=dict(asked.request.tags),
                asset_selection=list(asked.request.asset_selection or []),
                run_config={"loggers": {"silent": {}}},
                raise_on_error=False,
            )

    def tick(self) -> list[Asked]:
        """Look, and run what is asked for."""
        asked = self.look()
        for run in asked:
            self.run(run)
        return asked

    def settle(self) -> list[Asked]:
        """Look and run until nothing is asked for; return all that was."""
        done: list[Asked] = []
        for _ in range(ROUNDS):
            asked = self.tick()
            done += asked
            if not asked:
                return done
        msg = f"After {ROUNDS} looks there is still something to do: {done[-3:]}"
        raise AssertionError(msg)

    def _asked(self, request: dg.RunRequest) -> Asked:
        first, last = request.tags.get(RANGE_START), request.tags.get(RANGE_END)
        keys: Sequence[str] = [request.partition_key] if request.partition_key else list(self._between(first, last))
        names = {key.path[-1] for key in request.asset_selection or []}
        return Asked(tuple(keys), "canonical_traces" in names, request)

    def _between(self, first: str | None, last: str | None) -> Iterator[str]:
        assert first is not None
        assert last is not None
        yield from (key for key in partitions_of(self.source).get_partition_keys() if first <= key <= last)
