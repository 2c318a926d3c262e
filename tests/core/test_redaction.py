"""What is redacted, what stays, and that equal values stay equal."""

import ast
import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.conventions.arguments import arguments_of
from stepacc_core.errors import AnnotationError, ConfigError
from stepacc_core.log_records import carrier
from stepacc_core.model import RawEvent, RawSpan
from stepacc_core.redaction import KINDS, RedactionSettings, Redactor, holds_mark
from tests.core.redaction_corpus import HARMLESS, Sensitive, corpus
from tests.fidelity import TRACES, manifest, raw_spans

KEY = b"a key of the tests, long enough."
REDACTOR = Redactor(RedactionSettings(), KEY)
CORPUS = corpus(500)


def redactor(**settings: Any) -> Redactor:
    """A redactor by settings that are not the defaults."""
    return Redactor(RedactionSettings(**settings), KEY)


def span(**parts: Any) -> RawSpan:
    """A span that says something."""
    return RawSpan("t", "s", "a span", **parts)


# what is found


@pytest.mark.parametrize("kind", KINDS)
def test_everything_of_a_kind_is_found_and_called_so(kind: str) -> None:
    given = [each for each in CORPUS if each.kind == kind]
    found: Counter[str] = Counter()
    left = [each for each in given if each.value in REDACTOR.text(each.written, found)]

    assert len(given) >= 30
    assert left == []
    assert set(found) == {kind}


@pytest.mark.parametrize(
    "place",
    [
        lambda text: {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"content": text}]}])},
        lambda text: {"output.value": json.dumps({"result": json.dumps({"note": text})})},
        lambda text: {"arguments": {"nested": [{"deep": [text, 1]}]}},
        lambda text: {"repr": repr({"note": text, "n": 1})},
        lambda text: {f"key {text}": 1},
        lambda text: {"escaped": json.dumps({"note": text}).replace("@", "\\u0040").replace("-", "\\u002d")},
        lambda text: {"lines": f"before\n{text}\nafter"},
    ],
    ids=["nested JSON", "JSON in JSON in JSON", "objects", "Python", "key", "escaped", "lines"],
)
def test_it_is_found_wherever_it_stands(place: Any) -> None:
    for each in CORPUS[:200]:
        attributes = place(each.written)
        redacted = REDACTOR.span(span(attributes=attributes)).attributes
        assert each.value not in _everything_in(redacted), each
        assert holds_mark(redacted), each


def _everything_in(value: Any) -> str:
    """All texts in a value, whatever JSON or Python they are wrapped in."""
    texts: list[str] = []
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            texts.append(found)
            for read in (json.loads, ast.literal_eval):
                try:
                    inner = read(found)
                except (ValueError, SyntaxError):
                    continue
                waiting += [inner] if inner != found and not isinstance(inner, int | float) else []
        elif isinstance(found, dict):
            waiting += [*found.keys(), *found.values()]
        elif isinstance(found, list):
            waiting += found
    return "\n".join(texts)


@pytest.mark.parametrize(
    "key", ["password", "db.password", "X-Api-Key", "apiKey", "client_secret", "http.header.cookie"]
)
def test_a_key_tells_of_a_secret_that_looks_like_nothing(key: str) -> None:
    redacted = REDACTOR.value({key: "correct horse battery", "list": {key: ["staple"]}})

    assert redacted[key].startswith("[redacted:secret:")
    assert redacted["list"][key][0].startswith("[redacted:secret:")


@pytest.mark.parametrize("value", ["", "***", "null", "${PASSWORD}", "<your password>", "required", True, None])
def test_what_stands_for_a_secret_is_none(value: Any) -> None:
    assert REDACTOR.value({"password": value}) == {"password": value}


def test_a_number_is_redacted_where_it_is_a_card_or_a_secret() -> None:
    redacted = REDACTOR.value({"n": 4111111111111111, "cvv": 123, "phone": 4915112345678, "order": 4111111111111112})

    assert [value if isinstance(value, int) else value.split(":")[1] for value in redacted.values()] == [
        "card",
        "secret",
        "phone",
        4111111111111112,
    ]


# what stays


@pytest.mark.parametrize("text", HARMLESS)
def test_what_traces_are_full_of_stays(text: str) -> None:
    assert REDACTOR.text(text) == text
    assert REDACTOR.value({"session.id": text, "output": json.dumps({"note": text})}) == {
        "session.id": text,
        "output": json.dumps({"note": text}),
    }


def test_recorded_traces_stay_but_for_what_is_personal_in_them() -> None:
    found: Counter[str] = Counter()
    for entry in manifest():
        for raw in raw_spans(entry["file"]):
            REDACTOR.span(raw, found)

    assert found == {}
    assert TRACES.is_dir()


def test_ids_names_and_times_of_a_span_stay() -> None:
    mail = "ann@example.org"
    given = RawSpan(mail, mail, mail, mail, 1, 2, attributes={"a": mail}, scope_name=mail)
    redacted = REDACTOR.span(given)

    assert replace(redacted, attributes=given.attributes) == given
    assert redacted.attributes != given.attributes


def test_all_parts_of_a_span_are_redacted() -> None:
    mail = "ann@example.org"
    found: Counter[str] = Counter()
    event = RawEvent("exception", 1, {"exception.message": f"no user {mail}"})
    given = span(attributes={"a": mail}, events=(event,), resource={"owner": mail}, status_message=f"{mail} is unknown")
    redacted = REDACTOR.span(given, found)

    assert mail not in repr(redacted)
    assert found == {"email": 4}


def test_the_id_of_a_carried_log_record_tells_nothing_of_its_content() -> None:
    def carried(body: str) -> RawSpan:
        return carrier((("t", "s"), RawEvent("gen_ai.choice", 1, {"body": body})))

    redacted = REDACTOR.span(carried("ann@example.org"))

    assert redacted.span_id != carried("ann@example.org").span_id
    assert redacted == carried(REDACTOR.text("ann@example.org"))
    assert REDACTOR.span(redacted) == redacted


def test_what_is_odd_is_gone_over_all_the_same() -> None:
    deep: Any = "ann@example.org"
    for _ in range(3_000):
        deep = [deep]
    odd = {
        "deep": deep,
        "nested text": "[" * 5_000 + "'ann@example.org'" + "]" * 5_000,
        "numbers": "{'a': 1_010, 'b': 0x1F, 'c': 1e5j, 'to': 'ann@example.org'}",
        "half a pair": "\ud800 ann@example.org",
        "escapes": '{"a": "\\ud800", "to": "ann@example.org"}',
        "bytes": "{'to': b'ann@example.org', 'raw': r'ann@example.org'}",
        "cut": '{"to": "ann@example.org", "then": [1, 2',
        "lines": '{"to": "ann@example.org"}\n{"to": "bob@example.org"}',
        "tuple": ("ann@example.org", float("nan"), None),
    }
    given = span(attributes=odd, events=(RawEvent("", None, odd),), status_message="\ud800 ann@example.org")

    redacted = REDACTOR.span(given)

    assert "example.org" not in repr(redacted)
    assert REDACTOR.span(redacted) == redacted


# marks


def test_equal_values_have_equal_marks_and_a_key_of_its_own_gives_others() -> None:
    first, second, other = (
        REDACTOR.text(text) for text in ("ann@example.org", "to ann@example.org", "bob@example.org")
    )

    assert second == f"to {first}"
    assert first != other
    assert Redactor(RedactionSettings(), b"another key, as long as that one").text("ann@example.org") != first


def test_an_argument_has_one_mark_inside_text_and_outside() -> None:
    arguments = {"to": "ann@example.org", "password": 'a "quoted" word', "amount": 1.50, "card": 4111111111111111}
    redacted = REDACTOR.value(arguments)

    for written in (json.dumps(arguments), json.dumps(arguments, indent=1), repr(arguments)):
        assert arguments_of(REDACTOR.text(written)) == redacted
    assert REDACTOR.expected(arguments) == redacted


def test_text_that_is_json_keeps_its_form() -> None:
    written = '{ "n": 1.50,\t"big": 12345678901234567890, "e": 1E5, "to": "ann@example.org", "é": "\\u00e9" }'

    assert REDACTOR.text(written) == written.replace("ann@example.org", REDACTOR.text("ann@example.org"))


@given(
    st.lists(
        st.one_of(
            st.sampled_from([each.written for each in CORPUS]),
            st.sampled_from(HARMLESS),
            st.text(max_size=20),
            st.sampled_from(
                ["@", "+", "[redacted:email:", "]", "password=", '"', "\\", "{", "}", ":", "\n", "eyJ", "0049 "]
            ),
        ),
        max_size=6,
    ),
    st.sampled_from(["", " ", ", ", '","']),
)
def test_redacting_twice_changes_nothing(parts: list[str], between: str) -> None:
    for text in (between.join(parts), json.dumps({"a": parts}), json.dumps({"password": between.join(parts)})):
        once = REDACTOR.text(text)
        assert REDACTOR.text(once) == once


JSON = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.text(max_size=10), st.sampled_from([e.written for e in CORPUS])
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "password", "phone", "to"]), inner)
    ),
    max_leaves=10,
)


@given(JSON)
def test_a_value_redacted_twice_or_as_json_text_is_the_same(value: Any) -> None:
    once = REDACTOR.value(value)

    assert REDACTOR.value(once) == once
    if isinstance(value, dict | list):
        assert json.loads(REDACTOR.text(json.dumps(value))) == once


@given(st.lists(st.sampled_from([*CORPUS, *HARMLESS]), max_size=5))
def test_the_scan_before_all_detectors_misses_nothing_they_find(parts: list[Sensitive | str]) -> None:
    """With a pattern of one's own that matches nothing, every text is gone over."""
    always = _ALWAYS
    text = " ".join(each if isinstance(each, str) else each.written for each in parts)
    given = span(attributes={"a": text, "b": json.dumps({"c": text})})

    assert REDACTOR.span(given) == always.span(given)


_ALWAYS = redactor(patterns={"nothing": "[^\\x00-\\x{10FFFF}]"})


def test_equal_expectations_are_met() -> None:
    expected = [
        {"tool": "sign_in", "args": {"password": {"equals": "hunter two"}, "user": {"one_of": ["ann@example.org"]}}},
        {"tool": "pay", "args": {"card": 4111111111111111, "n": 1}},
    ]
    redacted = REDACTOR.expected(expected)

    seen = REDACTOR.value({"password": "hunter two", "user": "ann@example.org", "card": 4111111111111111})
    assert redacted[0]["args"] == {"password": {"equals": seen["password"]}, "user": {"one_of": [seen["user"]]}}
    assert redacted[1]["args"] == {"card": seen["card"], "n": 1}


@pytest.mark.parametrize(
    "pattern", ["ann@example.org", r"^ann@example\.org$", r"sk-proj-abcdefghij1234567890ABCDEFGHIJ"]
)
def test_a_pattern_that_holds_a_secret_is_refused_without_being_shown(pattern: str) -> None:
    with pytest.raises(AnnotationError, match="A `regex` holds something of the kind") as refusal:
        REDACTOR.expected({"final_answer": {"regex": pattern}})

    assert "example" not in str(refusal.value)
    assert "sk-proj" not in str(refusal.value)


def test_a_number_that_is_a_card_is_refused_as_a_number_and_met_as_a_value() -> None:
    with pytest.raises(AnnotationError, match="A `number` holds something of the kind card"):
        REDACTOR.expected({"args": {"n": {"number": 4111111111111111}}})

    assert REDACTOR.expected({"args": {"n": {"number": 25, "tolerance": 0.01}}})["args"]["n"]["number"] == 25


# settings


def test_kinds_patterns_and_allowed_values_are_settings() -> None:
    text = "ann@example.org, support@example.com, CUST-12345678, +49 30 901820"
    found: Counter[str] = Counter()
    own = redactor(kinds=("email",), patterns={"customer": "CUST-[0-9]{8}"}, allow=("*@EXAMPLE.com",))

    redacted = own.text(text, found)

    assert found == {"email": 1, "customer": 1}
    assert "support@example.com" in redacted
    assert redacted.endswith("+49 30 901820")


def test_an_own_pattern_with_anchors_and_quotes_is_found_in_json_too() -> None:
    own = redactor(patterns={"member": '^"M-[0-9]+" only$'})

    assert "M-17" not in own.text(json.dumps({"note": '"M-17" only'}))
    assert "M-17" not in repr(own.span(span(attributes={"x": "y", "note": '"M-17" only'})))


@pytest.mark.parametrize(
    ("settings", "setting", "said"),
    [
        ({"kinds": ("mail",)}, "redaction.kinds", "names 'mail'; use private_key"),
        ({"patterns": {"Customer": "x"}}, "redaction.patterns", "has the name 'Customer'"),
        ({"patterns": {"email": "x"}}, "redaction.patterns", "has the name 'email'"),
        ({"patterns": {"own": "(?<=a)b"}}, "redaction.patterns", "which RE2 refuses"),
        ({"patterns": {"own": "x*"}}, "redaction.patterns", "matches empty text"),
        ({"allow": ("*",)}, "redaction.allow", "would allow everything"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(settings: dict[str, Any], setting: str, said: str) -> None:
    with pytest.raises(ConfigError, match="redaction") as refusal:
        RedactionSettings(**settings)

    assert said in str(refusal.value)
    assert refusal.value.setting == setting
