"""The sources of a soak and their settings."""

from datetime import datetime, timedelta
from pathlib import Path

from tests.integration.disturbed_processes import configure
from tests.soak.happenings import SOURCES

METRIC = "agent.step_accuracy"
VERSIONS = ("1.0.0", "2.0.0")
"""The versions of the metric that take turns."""
_BEFORE = {"daily": timedelta(days=8), "hourly": timedelta(hours=8)}


def configure_sources(home: Path, version: str, begin: datetime) -> None:
    """Write the settings of all sources, for a soak that began at a moment."""
    for name, kind in SOURCES.items():
        configure(
            home,
            name,
            METRIC,
            metric_version=version,
            start_date=(begin - _BEFORE[kind]).date().isoformat(),
            partitions=kind,
            follow={"interval_seconds": 3, "max_runs": 3},
        )
