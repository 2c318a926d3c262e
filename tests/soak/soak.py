"""A soak: real processes at work for a while, disturbed at random; at the end all is as if nothing had been."""

import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from stepacc_dagster.local.evaluation import LocalEvaluation
from stepacc_dagster.local.instance import local_instance
from stepacc_dagster.local.postgres import throwaway_postgres
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.schema import upgrade
from tests.integration.conftest import Server, opened
from tests.integration.disturbed_access import Rows, due, rows
from tests.integration.disturbed_processes import open_stage
from tests.soak.course import Course
from tests.soak.happenings import Write, happenings
from tests.soak.outcome import comparable, differences, figures
from tests.soak.report import Report, Settings
from tests.soak.sources import VERSIONS, configure_sources


def soak(settings: Settings) -> Report:
    """Run a soak over a server and a home of its own."""
    report = Report(settings)
    with tempfile.TemporaryDirectory(prefix="stepacc-soak-") as folder, throwaway_postgres() as postgres:
        home = Path(folder)
        home.chmod(0o755)
        begin = datetime.now(UTC)
        work = happenings(settings.seed, begin, int(settings.seconds))
        configure_sources(home, VERSIONS[0], begin)
        with open_stage(home, postgres) as stage:
            course = Course(settings, stage, report)
            with course.attended():
                course.disturbed(work, begin)
                course.settle()
                course.inspect()
            found, sources = rows(stage.engine), stage.sources
        expected, log = undisturbed(Server(postgres.url("postgres")), sources, [each.write for each in work])
        report.figures["event log of the undisturbed run"] = log
        _compare(report, found, expected)
    return report


def undisturbed(server: Server, sources: Sequence[Source], writes: Sequence[Write]) -> tuple[Rows, Mapping[str, float]]:
    """Write the same to another database, and evaluate it once, in this process; return rows and event log figures."""
    with server.database() as url, opened(url) as engine, tempfile.TemporaryDirectory() as home:
        upgrade(engine)
        for write in writes:
            with engine.begin() as connection:
                write(connection)
        with local_instance(Path(home), url) as instance:
            for source in sources:
                evaluation = LocalEvaluation(source, instance, engine)
                for run in evaluation.materialize(evaluation.all_keys()):
                    assert run.success, run.error
            left = due(engine, sources)
            assert not left, left
        return rows(engine), figures(engine)


def _compare(report: Report, found: Rows, expected: Rows) -> None:
    version = str(report.figures["metric version at the end"])
    alike = comparable(found, version), comparable(expected, version)
    report.figures["rows compared"] = {table: len(each) for table, each in alike[1].items()}
    report.differing += differences(*alike)
