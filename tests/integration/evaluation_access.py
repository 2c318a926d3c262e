"""What the tests of the evaluation do: land and annotate, run Dagster, and read back what both databases hold."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as sa

from stepacc_core.annotations import TargetType
from stepacc_core.model import PartitionType, RawSpan
from stepacc_dagster.database import DAGSTER_SCHEMA, DAGSTER_URL_VARIABLE
from stepacc_dagster.local.evaluation import LocalEvaluation
from stepacc_dagster.local.instance import local_instance
from stepacc_dagster.local.kept_connections import kept_connections
from stepacc_dagster.local.outcome import RunOutcome
from stepacc_dagster.sources import MetricChoice, RetrySettings, Source
from stepacc_dagster.storage.annotations import Added, AnnotationEntry, add_annotations, withdraw
from stepacc_dagster.storage.raw_spans import land_spans
from tests.integration.conftest import Server, opened
from tests.integration.evaluation_samples import DAYS, SOURCE, START

QUICK = RetrySettings(max_retries=2, delay_seconds=0.05)


def support_source(**settings: Any) -> Source:
    """Return the tests' source, whose retries come soon."""
    return Source(**{"name": SOURCE, "start_date": START, "retry": QUICK, **settings})


@dataclass(frozen=True)
class Workshop:
    """A Dagster instance and a database of stepacc."""

    instance: dg.DagsterInstance
    engine: sa.Engine

    def land(self, *traces: Iterable[RawSpan]) -> None:
        """Land the spans of traces."""
        with self.engine.begin() as connection:
            land_spans(connection, SOURCE, [span for spans in traces for span in spans])

    def annotate(
        self, target_type: TargetType, target_id: str, value: Any, partition_type: PartitionType = "trace"
    ) -> Added:
        """Say what a target should do."""
        entry = AnnotationEntry(SOURCE, target_type, target_id, value, partition_type, author="qa@example.org")
        with self.engine.begin() as connection:
            [added] = add_annotations(connection, [entry])
        return added

    def withdraw(self, target_type: TargetType, target_id: str) -> None:
        """Take back what is said of a target."""
        with self.engine.begin() as connection:
            withdraw(connection, SOURCE, target_type, target_id)

    def evaluation(self, **settings: Any) -> LocalEvaluation:
        """Return the source ready to be evaluated; `metric` and `version` name its metric."""
        chosen = {name: settings.pop(name) for name in ("name", "version", "config") if name in settings}
        return LocalEvaluation(support_source(metric=MetricChoice(**chosen), **settings), self.instance, self.engine)

    def run(self, *keys: str, **settings: Any) -> RunOutcome:
        """Ingest and score neighbouring partitions in one run."""
        [outcome] = self.evaluation(**settings).materialize(keys)
        return outcome

    def scores(self, order: str = "partition_type, partition_id, score_id") -> list[Any]:
        """Return every evaluation with its lineage and sentence."""
        return self.rows(f"SELECT l.*, s.reason, s.message FROM stepacc.score_lineage l "  # noqa: S608
                         f"JOIN stepacc.scores s ON s.id = l.score_id ORDER BY {order}")  # fmt: skip

    def current(self) -> list[Any]:
        """Return the current evaluations."""
        return self.rows("SELECT * FROM stepacc.current_scores ORDER BY partition_type, partition_id, metric_version")

    def rows(self, query: str, **parameters: Any) -> list[Any]:
        """Return the rows of a query."""
        with self.engine.connect() as connection:
            return list(connection.execute(sa.text(query), parameters))

    def execute(self, statement: str, **parameters: Any) -> None:
        """Run a statement, as somebody at the database might."""
        with self.engine.begin() as connection:
            connection.execute(sa.text(statement), parameters)

    def metadata(self, asset: str, key: str, source: str = SOURCE) -> dict[str, Any]:
        """Return the metadata of the newest materialisation of a partition."""
        return {name: value.value for name, value in self.materialization(asset, key, source).metadata.items()}

    def materialization(self, asset: str, key: str, source: str = SOURCE) -> dg.AssetMaterialization:
        """Return the newest materialisation of a partition."""
        return materializations(self.instance, asset, key, source)[0]

    def checks(self, run: RunOutcome) -> dict[str, Any]:
        """Return the check results of a run, by name."""
        entries = self.instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        found = [entry.get_dagster_event().asset_check_evaluation_data for entry in entries]
        return {evaluation.check_name: evaluation for evaluation in found}

    def events(self, run: RunOutcome, event_type: dg.DagsterEventType) -> int:
        """Return how many events of a type a run has."""
        return len(self.instance.all_logs(run.run_id, of_type=event_type))

    def statuses(self, asset: str, evaluation: LocalEvaluation, keys: Sequence[str] = DAYS) -> dict[str, str]:
        """Return what became of partitions, by key, leaving out those nothing was done to."""
        definition = dg.DailyPartitionsDefinition(evaluation.source.start_date, end_offset=1)
        found = self.instance.get_status_by_partition(dg.AssetKey([SOURCE, asset]), keys, definition)
        return {key: status.value for key, status in (found or {}).items() if status}


@contextmanager
def open_workshop(server: Server, migrated: str, dagster: str) -> Iterator[Workshop]:
    """Open a workshop over databases of its own, for a fixture that several tests share."""
    with (
        server.database(migrated) as url,
        server.database(dagster) as own,
        tempfile.TemporaryDirectory() as home,
        opened(url) as engine,
        pytest.MonkeyPatch.context() as patch,
    ):
        storage = sa.make_url(own).update_query_dict({"options": f"-csearch_path={DAGSTER_SCHEMA}"})
        patch.setenv(DAGSTER_URL_VARIABLE, storage.set(drivername="postgresql").render_as_string(hide_password=False))
        with local_instance(Path(home), url) as instance, kept_connections(instance):
            yield Workshop(instance, engine)


def materializations(
    instance: dg.DagsterInstance, asset: str, key: str, source: str = SOURCE
) -> list[dg.AssetMaterialization]:
    """Return the materialisations of a partition, newest first."""
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey([source, asset]), asset_partitions=[key]), limit=20
    ).records
    return [record.asset_materialization for record in records if record.asset_materialization]


def values(evaluation: Any) -> Mapping[str, Any]:
    """Return the metadata of a check result as plain values."""
    return {name: value.value for name, value in evaluation.metadata.items()}
