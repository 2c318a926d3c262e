"""Tests of agents: an assertion whose failure is the picture of the alignment, and a fixture that captures steps.

The fixture `agent_steps` comes with the pytest plugin (`stepacc_core.testing_plugin`), which pytest finds by itself.
"""

from stepacc_core.testing.assertion import assert_trajectory

__all__ = ["assert_trajectory"]
