"""How traces are read is said on the command line as it is in a source's settings."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stepacc_dagster.cli import main

TRACES = Path(__file__).parent / "data" / "traces"
HANDOFF = str(TRACES / "google-adk" / "handoff.otlp.jsonl")
OURS = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        {"traceId": "ab" * 16, "spanId": "01" * 8, "name": "run", "startTimeUnixNano": "1"},
                        {
                            "traceId": "ab" * 16,
                            "spanId": "02" * 8,
                            "parentSpanId": "01" * 8,
                            "name": "x",
                            "startTimeUnixNano": "2",
                            "attributes": [
                                {"key": "step.type", "value": {"stringValue": "function"}},
                                {"key": "step.function", "value": {"stringValue": "search"}},
                            ],
                        },
                    ]
                }
            ]
        }
    ]
}
MAPPING = "[{name: ours, kind_attribute: step.type, kinds: {function: TOOL}, tool_name: step.function}]"


def run(*words: str) -> Any:
    """Run a command in this process."""
    return CliRunner().invoke(main, [*words])


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ["triage_agent", "transfer_to_agent", "billing_agent", "lookup_invoice"]),
        (["--entry-agent", "root"], ["transfer_to_agent", "billing_agent", "lookup_invoice"]),
        (["--entry-agent", "root", "--handoffs", "tool"], ["transfer_to_agent", "lookup_invoice"]),
        (["--ignore", "Transfer-To-Agent", "--ignore", "triage_agent"], ["billing_agent", "lookup_invoice"]),
    ],
)
def test_a_step_policy_is_applied(options: list[str], names: list[str]) -> None:
    trace = json.loads(run("steps", HANDOFF, "--json", *options).stdout.splitlines()[0])

    assert [step["name"] for step in trace["steps"]] == names


def test_a_policy_changes_the_score(tmp_path: Path) -> None:
    expected = tmp_path / "expected.json"
    target = {"type": "trace", "id": json.loads(run("steps", HANDOFF, "--json").stdout.splitlines()[0])["partition_id"]}
    expected.write_text(json.dumps([{"target": target, "expected_steps": ["billing_agent", "lookup_invoice"]}]))
    policy = ["--entry-agent", "root", "--handoffs", "agent"]

    literal = json.loads(run("score", HANDOFF, "--annotations", str(expected)).stdout)
    chosen = json.loads(run("score", HANDOFF, "--annotations", str(expected), *policy).stdout)

    assert (literal["score"], chosen["score"]) == (0.5, 1)


def test_a_declared_mapping_makes_unknown_spans_known(tmp_path: Path) -> None:
    (tmp_path / "ours.jsonl").write_text(json.dumps(OURS))
    (tmp_path / "mapping.yaml").write_text(MAPPING)
    file = str(tmp_path / "ours.jsonl")

    without = run("steps", file, "--json")
    read = run("steps", file, "--json", "--mapping", str(tmp_path / "mapping.yaml"))

    assert without.exit_code == 1
    assert "declare a mapping" in without.stderr
    assert read.exit_code == 0
    assert [step["name"] for step in json.loads(read.stdout)["steps"]] == ["search"]


@pytest.mark.parametrize("content", ["[{name: ours}]", "3", "\udcff"])
def test_a_bad_mapping_is_refused_by_name(tmp_path: Path, content: str) -> None:
    (tmp_path / "mapping.yaml").write_bytes(content.encode(errors="surrogateescape"))

    refused = run("steps", HANDOFF, "--mapping", str(tmp_path / "mapping.yaml"))

    assert refused.exit_code == 1
    assert "mapping.yaml" in refused.stderr
    assert "Traceback" not in refused.output
