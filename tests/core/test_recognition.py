"""Which conventions a span speaks: the one pass over its attributes against asking every row of the table."""

from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.conventions.recognise import TABLE, spoken
from stepacc_core.model import RawEvent, RawSpan

_NAMES = sorted(set[str]().union(*(row.marks for row in TABLE)) | {"span.type", "gen_ai.unheard_of", "http.method"})

spans = st.builds(
    RawSpan,
    trace_id=st.just("t"),
    span_id=st.just("s"),
    name=st.sampled_from(["invocation", "call_llm", "agent_run [a]", "claude_code.tool", "chat"]),
    attributes=st.dictionaries(st.sampled_from(_NAMES), st.sampled_from(["claude_code.tool", "chat", None])),
    events=st.lists(st.sampled_from([RawEvent("gen_ai.choice"), RawEvent("exception")])).map(tuple),
    scope_name=st.sampled_from(["", "gcp.vertex.agent"]),
)


@given(spans)
def test_a_span_speaks_the_conventions_that_recognise_it_in_the_order_of_the_table(span: RawSpan) -> None:
    assert spoken(span) == tuple(row for row in TABLE if row.recognises(span))


def test_every_convention_is_told_by_something() -> None:
    assert all(row.marks or row.also for row in TABLE)
