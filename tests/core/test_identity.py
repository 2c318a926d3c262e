"""Whose a span is, by whatever attribute names a session or a user."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.conventions.values import identifier
from stepacc_core.identity import USER_ID_ATTRIBUTES, sessions_named, users_named
from stepacc_core.model import RawEvent, RawSpan
from stepacc_core.reading import SESSION_ID_ATTRIBUTES, canonicalise

IDS = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1, max_size=20).filter(
    lambda text: identifier(text) is not None
)


def span(**parts: Any) -> RawSpan:
    """Return a span with these attributes, resource or events."""
    return RawSpan("t", "s", "a span", **parts)


def ways_to_write(path: str, ident: Any) -> list[dict[str, Any]]:
    """Return the attribute as it is, and for every dot of it an object, or JSON text of one, that goes on inside."""
    found: list[dict[str, Any]] = [{path: ident}]
    parts = path.split(".")
    for cut in range(1, len(parts)):
        holder, rest = ".".join(parts[:cut]), ".".join(parts[cut:])
        found += [{holder: {rest: ident}}, {holder: json.dumps({rest: ident})}]
    return found


@given(IDS, st.sampled_from(USER_ID_ATTRIBUTES), st.data())
def test_a_user_is_found_by_every_attribute_in_every_form(ident: str, path: str, data: st.DataObject) -> None:
    written = data.draw(st.sampled_from(ways_to_write(path, ident)))
    assert users_named(span(attributes=written)) == {identifier(ident)}
    assert users_named(span(resource=written)) == {identifier(ident)}
    assert users_named(span(events=(RawEvent("a log record", attributes=written),))) == {identifier(ident)}


@given(IDS, st.sampled_from(SESSION_ID_ATTRIBUTES), st.data())
def test_the_session_of_a_trace_is_one_that_its_spans_name(ident: str, path: str, data: st.DataObject) -> None:
    """What a trace is stored under is what an erasure of its session looks for."""
    raw = span(attributes=data.draw(st.sampled_from(ways_to_write(path, ident))))
    assert sessions_named(raw) == {canonicalise("t", [raw]).session_id} == {identifier(ident)}


@pytest.mark.parametrize("attributes", [{}, {"user.id": ""}, {"user.id": None}, {"user.id": True}, {"user": "ann"}])
def test_what_is_no_id_names_nobody(attributes: dict[str, Any]) -> None:
    assert users_named(span(attributes=attributes)) == set()


def test_a_span_may_name_several() -> None:
    named = span(attributes={"user.id": "ann", "enduser.id": 7}, resource={"user.id": "bob"})
    assert users_named(named) == {"ann", "7", "bob"}
