"""Comparing names: tools folded, agents exactly, the observed step decides."""

import pytest

from stepacc_core.names import StepKind, matches


@pytest.mark.parametrize(
    ("expected", "observed", "kind", "answer"),
    [
        ("Get-Weather", "get_weather", "TOOL", True),
        ("getweather", "GET__WEATHER", "TOOL", True),
        ("Get-Weather", "get_weather", "AGENT", False),
        ("Get-Weather", "Get-Weather", "AGENT", True),
        ("planner", "Planner", "AGENT", False),
        ("stra\u00dfe", "STRASSE", "TOOL", True),
        ("caf\u00e9", "cafe\u0301", "TOOL", True),
        ("caf\u00e9", "cafe\u0301", "AGENT", False),
        ("get weather", "get_weather", "TOOL", False),
        ("get.weather", "get_weather", "TOOL", False),
        ("Server_get-by-id", "server_get_by_id", "TOOL", True),
        ("mcp_mcp_x_y", "mcp_x_y", "TOOL", False),
    ],
)
def test_names_match_as_the_contract_says(expected: str, observed: str, kind: StepKind, *, answer: bool) -> None:
    assert matches(expected, observed, kind) is answer
