"""The page of a report: one file of HTML, with its style and script in it and no address that a browser would load."""

from importlib import resources
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from stepacc_core.picture import PICTURE_CSS, picture_html
from stepacc_dagster.report.charts import distribution_chart, trend_chart
from stepacc_dagster.report.model import Reason, Report, View, WorstScore
from stepacc_dagster.trace_links import TraceUrl

_PICTURED_ENTRIES = 40
"""Entries of an alignment that are drawn, after folding."""


def render(report: Report, *, trace_links: TraceUrl | None = None, dagster_url: str | None = None) -> str:
    """Write a report as one page of HTML.

    Args:
        report: what was read.
        trace_links: what gives the link to a trace in its store's own UI, if anything does.
        dagster_url: address of the Dagster UI, for links to runs; None: runs are named, and not linked.
    """
    environment = Environment(
        loader=PackageLoader("stepacc_dagster.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"score": _score, "share": _share, "number": _number}
    links = _Links(trace_links, dagster_url)
    return environment.get_template("report.html.j2").render(
        report=report,
        mixed=len({view.partition_type for view in report.views}) > 1,  # what is counted per window counts both
        css=Markup(PICTURE_CSS + _asset("report.css")),  # noqa: S704 (our own text)
        script=Markup(_asset("report.js")),  # noqa: S704 (as above)
        views=[(f"view-{place}", view) for place, view in enumerate(report.views)],
        trend=_trend,
        distribution=_distribution,
        picture=_picture,
        links=links,
    )


class _Links:
    """Addresses of traces and runs; None where there is none."""

    def __init__(self, traces: TraceUrl | None, dagster_url: str | None) -> None:
        self._traces = traces
        self._dagster = dagster_url.rstrip("/") if dagster_url else None

    def trace(self, worst: WorstScore) -> str | None:
        return self._traces.of(worst.trace_id) if self._traces and worst.trace_id else None

    def example(self, view: View, reason: Reason) -> str | None:
        return self._traces.of(reason.example_id) if self._traces and view.partition_type == "trace" else None

    def run(self, worst: WorstScore) -> str | None:
        return f"{self._dagster}/runs/{quote(worst.run_id, safe='')}" if self._dagster and worst.run_id else None


def _trend(view: View) -> Markup:
    return Markup(trend_chart(view.trend, f"Mean of {view.headline} over time, a line for each version"))  # noqa: S704 (drawn and escaped by Vega)


def _distribution(view: View) -> Markup:
    return Markup(distribution_chart(view.bins, f"Number of {view.partition_type}s by {view.headline}"))  # noqa: S704 (as above)


def _picture(worst: WorstScore) -> Markup:
    return Markup(picture_html(worst.metadata, longest=_PICTURED_ENTRIES))  # noqa: S704 (everything in it is escaped)


def _asset(name: str) -> str:
    return resources.files("stepacc_dagster.report").joinpath("templates", name).read_text(encoding="utf-8")


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _number(value: int) -> str:
    return f"{value:,}"
