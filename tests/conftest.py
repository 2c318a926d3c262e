"""What all tests share."""

import os

import pytest
from hypothesis import settings

settings.register_profile("stepacc", deadline=None, print_blob=True)
settings.load_profile("stepacc")

_KEPT = ("STEPACC_TEST_DATABASE_URL", "STEPACC_PG_BIN")


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests see none of the settings of whoever runs them."""
    for name in os.environ:
        if name.startswith(("STEPACC_", "DAGSTER_", "PG")) and name not in _KEPT:
            monkeypatch.delenv(name)
