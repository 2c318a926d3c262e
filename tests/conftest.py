"""What all tests share."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("stepacc", deadline=None, print_blob=True)
settings.load_profile("stepacc")

_KEPT = ("STEPACC_REDACTION_KEY", "STEPACC_TEST_DATABASE_URL", "STEPACC_PG_BIN")

# Of a database that others may share: set before any fixture, and taken over by the processes that tests start.
os.environ["STEPACC_REDACTION_KEY"] = "the redaction key of all the tests"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the files begin first that have the longest time limits, so that nobody waits at the end for one of them."""
    limits: dict[Path, float] = {}
    for item in items:
        limit = item.get_closest_marker("timeout")
        limits[item.path] = max(limits.get(item.path, 0), limit.args[0] if limit else 0)
    items.sort(key=lambda item: -limits[item.path])


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see none of the settings of whoever runs them."""
    for name in os.environ:
        if name.startswith(("STEPACC_", "DAGSTER_", "PG")) and name not in _KEPT:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_running_loop(request: pytest.FixtureRequest) -> None:
    """Nothing before a test left an event loop running, in which Dagster could not run its own; a browser keeps one."""
    if request.node.get_closest_marker("browser") is None:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
