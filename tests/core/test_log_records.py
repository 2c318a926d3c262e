"""Log records meet their spans: at once in a set of files, later where they are carried."""

import itertools

import pytest

from stepacc_core.conventions.recognise import recognised
from stepacc_core.log_records import carried_joined, carrier, is_kept, join_logs
from stepacc_core.model import RawEvent, RawSpan
from stepacc_core.reading import canonicalise


def raw(span_id: str, events: tuple[RawEvent, ...] = ()) -> RawSpan:
    return RawSpan("t", span_id, "chat m", None, 10, 20, attributes={"gen_ai.operation.name": "chat"}, events=events)


def choice(name: str, time: int | None = 12) -> RawEvent:
    call = {"id": f"id {name}", "function": {"name": name, "arguments": "{}"}}
    return RawEvent("gen_ai.choice", time, {"body": {"message": {"tool_calls": [call]}}})


def test_carried_events_are_joined_as_if_they_had_been_there() -> None:
    """In whatever order spans and carriers come, and however often."""
    first, second = choice("x", 12), choice("y", 14)
    logs = [carrier((("t", "s"), event)) for event in (first, second)]
    whole, _ = carried_joined([raw("s", events=(first, second))])
    for order in itertools.permutations([raw("s"), *logs]):
        assert carried_joined(order) == (whole, ())
        trace = canonicalise("t", [*order, *logs])
        assert [call.name for span in trace.spans for call in span.tool_calls] == ["x", "y"]
        assert [span.span_id for span in trace.spans] == ["s"]


def test_an_event_that_the_span_has_already_is_not_added_again() -> None:
    event = choice("x")
    span = raw("s", events=(event,))

    assert carried_joined([span, carrier((("t", "s"), event))]) == ([span], ())
    assert list(join_logs([span], [(("t", "s"), event)] * 2)) == [span]


def test_equal_records_are_carried_by_one_span_and_others_are_not() -> None:
    one = carrier((("t", "s"), choice("x")))

    assert one == carrier((("t", "s"), choice("x")))
    others = [carrier((("t", "s"), choice(*each))) for each in (("y",), ("x", 13), ("x", None))]
    assert len({one.span_id, carrier((("t", "r"), choice("x"))).span_id, *(other.span_id for other in others)}) == 5
    assert recognised(one)


def test_records_whose_span_is_missing_are_told_and_are_no_spans() -> None:
    """The span may come later; until then nothing is known of it."""
    trace = canonicalise("t", [raw("s"), carrier((("t", "gone"), choice("x")))])

    assert [span.span_id for span in trace.spans] == ["s"]
    assert [(gap.kind, gap.span_ids) for gap in trace.gaps] == [("log_records_without_span", ("gone",))]
    alone = canonicalise("t", [carrier((("t", "gone"), choice("x")))])
    assert (alone.spans, alone.root_span_id) == ((), None)


@pytest.mark.parametrize(
    ("name", "kept"), [("gen_ai.choice", True), ("gen_ai.client.inference.operation.details", True), ("", False)]
)
def test_only_records_of_genai_instrumentations_are_kept(name: str, *, kept: bool) -> None:
    assert is_kept(RawEvent(name)) is kept
