"""The server and the databases of the integration tests, for the tests of deployments too."""

from tests.integration.conftest import _dagster_template, _migrated_template, server

__all__ = ["_dagster_template", "_migrated_template", "server"]
