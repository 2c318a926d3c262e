"""Conventions declared in YAML: read without code, and refused by name."""

import re
from pathlib import Path

import pytest

from stepacc_core.errors import ConfigError
from stepacc_core.mapping_files import parse_mappings
from stepacc_core.model import RawSpan
from stepacc_core.reading import ReadSettings, canonicalise, trace_partition
from stepacc_core.steps import collect_steps

YAML = """
mappings:
  - name: our agents
    kind_attribute: step.type
    kinds: {function: TOOL, model: LLM}
    tool_name: step.function
    tool_arguments: step.arguments
"""


def test_spans_no_reader_knows_are_read_by_a_declared_mapping() -> None:
    attributes = {"step.type": "function", "step.function": "search", "step.arguments": '{"q": 1}'}
    spans = [
        RawSpan("t", "root", "run", start_time_unix_nano=1, attributes={"step.type": "run"}),
        RawSpan("t", "call", "x", "root", start_time_unix_nano=2, attributes=attributes),
    ]

    trace = canonicalise("t", spans, ReadSettings(mappings=parse_mappings(YAML, name="ours.yaml")))

    (step,) = collect_steps(trace_partition(trace))
    assert (step.name, step.kind, step.arguments) == ("search", "TOOL", {"q": 1})
    assert collect_steps(trace_partition(canonicalise("t", spans))) == ()


def test_a_bare_list_is_taken_too() -> None:
    assert [m.name for m in parse_mappings("[{name: a, span_name: b, kind: TOOL}]", name="f")] == ["a"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "declares no mapping"),
        ("mappings: []", "declares no mapping"),
        ("a: {", "no valid YAML"),
        ("[{name: a, span_name: b, tool: c}]", "mapping 1, field `tool`"),
        ("[{span_name: b}]", "mapping 1, field `name`"),
        ("[{name: a, span_name: b}, 3]", "mapping 2"),
        ("[{name: a, span_name: b, kind: FUNCTION}]", "'TOOL'"),
        ("[{name: a}]", "would apply to every span"),
    ],
)
def test_what_is_no_mapping_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"`ours\.yaml`") as caught:
        parse_mappings(text, name="ours.yaml")

    assert said in str(caught.value)


def test_the_example_of_the_documentation_is_taken() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reading.md").read_text()
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)

    assert [mapping.name for mapping in parse_mappings(example, name="reading.md")] == ["our agents", "manager"]
