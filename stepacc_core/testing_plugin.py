"""The pytest plugin: fixtures that capture the steps of the code under test.

It is loaded into every test run of an environment, so it imports nothing before a fixture is used.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stepacc_core.policy import StepPolicy
    from stepacc_core.reading import ReadSettings
    from stepacc_core.testing.capture import CapturedSteps


@pytest.fixture
def agent_steps(agent_step_policy: "StepPolicy", agent_read_settings: "ReadSettings") -> Iterator["CapturedSteps"]:
    """The steps that the code under test takes, read from the OpenTelemetry spans that end during the test.

    Give them to `stepacc_core.testing.assert_trajectory`, or look at them as at a list. Spans are taken from the global
    tracer provider; where none is set, one is. Needs the extra `stepacc[testing]`.
    """
    from stepacc_core.errors import ConfigError  # noqa: PLC0415 (a test run that captures nothing pays for nothing)

    try:
        from stepacc_core.testing.capture import capturing  # noqa: PLC0415 (as above)
    except ModuleNotFoundError as error:
        msg = f"The fixture agent_steps needs the package {error.name}; run: pip install 'stepacc[testing]'."
        raise ConfigError(msg) from None
    with capturing(agent_read_settings, agent_step_policy) as captured:
        yield captured


@pytest.fixture
def agent_step_policy() -> "StepPolicy":
    """What of a trace is no step; override it, as with `StepPolicy(entry_agent="root")`."""
    from stepacc_core.policy import StepPolicy  # noqa: PLC0415 (as above)

    return StepPolicy()


@pytest.fixture
def agent_read_settings() -> "ReadSettings":
    """How spans are read; override it to declare a convention of your own."""
    from stepacc_core.reading import ReadSettings  # noqa: PLC0415 (as above)

    return ReadSettings()
