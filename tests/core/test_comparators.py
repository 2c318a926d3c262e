"""Arguments of calls against what references say of them."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepacc_core.marks import is_mark, mark
from stepacc_core.references import (
    ArgumentCheck,
    ReferenceStep,
    check_arguments,
    holds_mark,
    parse_references,
    read_arguments,
)
from stepacc_core.references.equality import canonical, same

CASES = Path(__file__).parents[1] / "cases"
COMPARATORS = json.loads((CASES / "comparators.json").read_text(encoding="utf-8"))
REPORTS = json.loads((CASES / "argument_reports.json").read_text(encoding="utf-8"))


def step(written: Any) -> ReferenceStep:
    """The one step of a reference."""
    [found] = parse_references([written]).references[0].elements
    assert isinstance(found, ReferenceStep)
    return found


@pytest.mark.parametrize("case", COMPARATORS, ids=lambda case: case["name"])
def test_case_of_a_comparator(case: dict[str, Any]) -> None:
    arguments = {"x": case["argument"]} if "argument" in case else {}

    [check] = check_arguments(step({"tool": "t", "args": {"x": case["written"]}}), arguments)

    assert (check.holds, check.reason) == (case["holds"], case.get("reason"))
    assert (check.name, check.actual) == ("x", case.get("argument"))
    assert check.expected == case["written"]


@pytest.mark.parametrize("case", REPORTS, ids=lambda case: case["id"])
def test_case_from_a_public_report(case: dict[str, Any]) -> None:
    checks = check_arguments(step(case["step"]), case["arguments"])

    if "checks" in case:
        assert [[check.name, check.expected, check.actual, check.holds] for check in checks] == case["checks"]
    else:
        assert [check.holds for check in checks] == case["holds"]
    assert {check.reason for check in checks} <= {case.get("reason")}


@pytest.mark.parametrize("nothing", [None, {}, "", "  ", "null", "{}"])
def test_no_arguments_are_written_in_many_ways(nothing: Any) -> None:
    assert read_arguments(nothing) == {}


@pytest.mark.parametrize("unreadable", ["{", "5", "[1]", 5, [1], "[" * 100_000])
def test_what_is_no_object_has_no_arguments_by_name(unreadable: Any) -> None:
    assert read_arguments(unreadable) is None
    [check] = check_arguments(step({"tool": "t", "args": {"x": {"absent": True}}}), unreadable)
    assert check == ArgumentCheck("x", {"absent": True}, unreadable, holds=False, reason="unparsable")


leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([1.0, 0.0, -0.0, 0.5, 2.0**53])
    | st.text(max_size=2)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


def equal_by_type(one: Any, other: Any) -> bool:
    """The contract's sentence, word by word."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal_by_type, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal_by_type(value, other[key]) for key, value in one.items())
    return type(one) is type(other) and bool(one == other)


@given(values, values)
def test_values_are_equal_by_type(one: Any, other: Any) -> None:
    assert same(one, other) is equal_by_type(one, other)
    assert same(one, json.loads(json.dumps(one)))
    assert (hash(canonical(one)) == hash(canonical(other))) or not same(one, other)


@given(st.dictionaries(st.text(max_size=3), values, max_size=4), st.randoms())
def test_the_order_of_arguments_changes_no_check(arguments: dict[str, Any], random: Any) -> None:
    names = list(arguments)
    random.shuffle(names)
    wanted = step({"tool": "t", "args": {name: {"equals": arguments[name]} for name in arguments}, "args_exact": True})

    checks = check_arguments(wanted, {name: arguments[name] for name in names})

    assert all(check.holds for check in checks)
    assert checks == check_arguments(wanted, json.dumps(arguments))
    assert [check.name for check in checks] == [*arguments, "*"]


offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
instants = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 1, 1), timezones=offsets)  # noqa: DTZ001 (bounds, without a zone by Hypothesis's rule)
FORMS: list[Callable[[dt.datetime], str]] = [
    dt.datetime.isoformat,
    lambda at: at.isoformat(" ").lower(),
    lambda at: at.strftime("%Y%m%dT%H%M%S,%f%z"),
    lambda at: at.strftime("%G-W%V-%uT%H:%M:%S.%f%z"),
    lambda at: at.strftime("%Y-%jT%H:%M:%S.%f%z"),
    lambda at: at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
]


@given(instants, offsets, st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_an_instant_is_the_same_in_every_zone_and_form(
    at: dt.datetime, zone: dt.tzinfo, one: Callable[[dt.datetime], str], other: Callable[[dt.datetime], str]
) -> None:
    wanted = step({"tool": "t", "args": {"at": {"datetime": one(at)}, "on": {"date": at.date().isoformat()}}})

    instant, day = check_arguments(wanted, {"at": other(at.astimezone(zone)), "on": at.isoformat()})
    later, _ = check_arguments(wanted, {"at": other(at.astimezone(zone) + dt.timedelta(microseconds=1))})

    assert (instant.holds, day.holds, later.holds) == (True, True, False)


def test_a_value_however_deep_is_compared() -> None:
    one: Any = []
    other: Any = []
    for _ in range(100_000):
        one, other = [one], [other]

    assert canonical(one) == canonical(other)
    assert canonical(one) != canonical([other])


def test_the_marks_of_the_redactor_are_known() -> None:
    made = mark("email", "ann@example.org", b"key")

    assert holds_mark({"to": [f"mail {made}"]})
    assert is_mark(made)
    for other in (
        "[redacted]",
        "[redacted:email]",
        "[redacted:email:0a1b]",
        made.upper(),
        made.replace("email", "my mail"),
    ):
        assert not holds_mark(other)
