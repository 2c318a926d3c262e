"""The JSON form of a partition."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core import dump_partition, load_partition
from stepacc_core.errors import PartitionError
from stepacc_core.model import CanonicalPartition

SPAN = {
    "trace_id": "t1",
    "span_id": "s1",
    "kind": "TOOL",
    "name": "search",
    "start_time_unix_nano": 1764460800000000001,
}
DOCUMENT: dict[str, Any] = {
    "partition_type": "trace",
    "partition_id": "t1",
    "expected_steps": ["search"],
    "annotation": {"id": 3, "revision": 1},
    "spans": [{**SPAN, "tool_calls": [{"id": "c1", "name": "search", "arguments": {"q": 1}}], "cost_usd": 1}],
}


def test_a_partition_survives_the_way_through_json() -> None:
    partition = load_partition(DOCUMENT)

    assert load_partition(dump_partition(partition)) == partition
    assert load_partition(json.dumps(DOCUMENT).encode()) == partition
    assert partition.spans[0].start_time_unix_nano == 1764460800000000001


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "tool"}, ["`t1`", "`s1`", "`kind`", "'TOOL'", "given 'tool'"]),
        ({"start_time_unix_nano": "1764460800000000001"}, ["`t1`", "`s1`", "`start_time_unix_nano`"]),
        ({"start_time_unix_nano": 1.5}, ["`start_time_unix_nano`", "1.5"]),
        ({"start_time_unix_nano": -1}, ["`start_time_unix_nano`", "-1"]),
        ({"input_tokens": True}, ["`input_tokens`", "True"]),
        ({"toolname": "x"}, ["`s1`", "`toolname`"]),
        ({"tool_calls": [{"name": 3}]}, ["`s1`", "`tool_calls.0.name`"]),
        ({"name": None}, ["`s1`", "`name`"]),
    ],
)
def test_a_bad_field_is_named_with_its_partition_and_span(change: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(PartitionError) as caught:
        load_partition({**DOCUMENT, "spans": [{**SPAN, "span_id": "s0"}, {**SPAN, **change}]})

    assert [part for part in said if part not in str(caught.value)] == []


def test_a_byte_order_mark_before_a_partition_is_no_part_of_it() -> None:
    text = json.dumps(DOCUMENT)

    assert load_partition("\ufeff" + text) == load_partition(text)
    assert load_partition(b"\xef\xbb\xbf" + text.encode()) == load_partition(text)


@pytest.mark.parametrize("written", ["NaN", "Infinity", "-Infinity", "1e999", "-1E+400"])
def test_numbers_that_json_does_not_have_become_text(written: str) -> None:
    document = {**DOCUMENT, "spans": [{**SPAN, "tool_arguments": {"n": 0.5}, "output": "NaN 1e999"}]}
    partition = load_partition(json.dumps(document).replace("0.5", written))

    assert partition.spans[0].tool_arguments == {"n": written}
    assert partition.spans[0].output == "NaN 1e999"
    assert load_partition(dump_partition(partition)) == partition


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", '"x"', '{"partition_type": "trace"}', '{"spans": 3}'])
def test_what_is_no_partition_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(PartitionError, match=r"^\S.*\.$"):
        load_partition(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(document=st.dictionaries(st.sampled_from(["partition_type", "partition_id", "spans", "annotation", "x"]), JSON))
def test_any_json_object_gives_a_partition_or_an_error(document: dict[str, Any]) -> None:
    with contextlib.suppress(PartitionError):
        assert isinstance(load_partition(document), CanonicalPartition)
