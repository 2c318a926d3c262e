"""Writing a report to a file: whole or not at all, so that nobody opens half a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from stepacc_dagster.errors import ReportError
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.report.queries import read_report
from stepacc_dagster.sources import Source
from stepacc_dagster.whole_files import whole_file

UI_URL_VARIABLE = "STEPACC_DAGSTER_UI_URL"
"""Environment variable that holds the address of the Dagster UI, for links to runs."""


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A report that was written: its file, bytes, and the occurrences it counts with and without a score."""

    path: Path
    size: int
    scored: int
    unscored: int


def report_path(folder: str, source: str) -> Path:
    """Return the file in which a folder keeps the report of a source."""
    return Path(folder).expanduser() / f"{source}.html"


def write_report(  # noqa: PLR0913 (what is told, and where it goes)
    conn: sa.Connection,
    source: Source,
    evaluators: Sequence[Evaluator],
    path: Path,
    *,
    first: str = "",
    last: str = "~",
    dagster_url: str | None = None,
) -> WrittenReport:
    """Write the report of a source over the windows from `first` to `last`.

    Raises:
        ReportError: the packages that draw a report are not installed.
        OSError: the file cannot be written; one that was there before is as it was.
    """
    try:
        from stepacc_dagster.report.page import render  # noqa: PLC0415 (its packages are an extra)
    except ModuleNotFoundError as error:
        msg = (
            f"A report needs the package `{error.name}`, which is not installed; run: pip install "
            "'stepacc[dagster,report]'."
        )
        raise ReportError(msg) from None
    report = read_report(conn, source, evaluators, first, last)
    page = render(report, trace_links=source.trace_links, dagster_url=dagster_url)
    data = page.encode("utf-8", errors="backslashreplace")
    with whole_file(path) as file:
        file.write(data)
    coverage = [view.coverage for view in report.views]
    return WrittenReport(
        path,
        len(data),
        sum(each.scored for each in coverage),
        sum(each.failed + each.not_applicable for each in coverage),
    )
