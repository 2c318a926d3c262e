"""The fast parts of `agent.trajectory_match` against slow ones that try everything, and what must change no row."""

from dataclasses import replace
from itertools import chain, permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepacc_core import CanonicalPartition, CanonicalSpan, Result, Step, get_metric, trajectory_match
from stepacc_core.judging.waste import Loop, loops
from stepacc_core.names import matches

METRIC = get_metric("agent.trajectory_match")
NAMES = ("a", "b", "B", "c")
MODES = ("exact", "in_order", "any_order")

steps = st.builds(
    Step,
    st.sampled_from(NAMES),
    st.sampled_from(["TOOL", "TOOL", "AGENT"]),
    arguments=st.sampled_from([None, {"x": 1}, {"x": 1.0}, {"x": 2, "y": 1}]),
    output=st.sampled_from([None, "one", "two"]),
    status=st.sampled_from(["OK", "ERROR"]),
)


@st.composite
def reference_steps(draw: st.DrawFn) -> Any:
    name = draw(st.sampled_from(NAMES))
    if draw(st.booleans()):
        return name
    step: dict[str, Any] = {draw(st.sampled_from(["tool", "tool", "agent"])): name}
    if draw(st.booleans()):
        step["args"] = draw(st.sampled_from([{"x": 1}, {"x": 2}, {"x": 1, "y": 1}]))
    if draw(st.integers(0, 2)) == 0:
        step["optional"] = True
    if draw(st.integers(0, 4)) == 0:
        step["args_exact"] = True
    if draw(st.integers(0, 4)) == 0:
        step["count_as"] = "once"
    return step


groups = st.lists(reference_steps(), min_size=1, max_size=4).map(lambda members: {"any_order": members})
trajectories = st.lists(st.one_of(reference_steps(), groups), max_size=4)


def plain(trajectory: list[Any]) -> list[Any]:
    """The trajectory without what changes the steps before they are compared."""
    return [
        {"any_order": plain(element["any_order"])}
        if isinstance(element, dict) and "any_order" in element
        else {key: value for key, value in element.items() if key != "count_as"}
        if isinstance(element, dict)
        else element
        for element in trajectory
    ]


def judged(trajectory: list[Any], observed: list[Step], **said: Any) -> Result:
    """Judge steps by one reference."""
    return trajectory_match({"references": [{"name": "r", "steps": trajectory}], **said}, observed)


def rows_of(result: Result) -> dict[str, Any]:
    """Everything that a row says apart from its metadata."""
    return {row.name: (row.status, row.score, row.code, row.reason) for row in result.family}


def members_of(element: Any) -> list[Any]:
    """The steps of an element."""
    return element["any_order"] if isinstance(element, dict) and "any_order" in element else [element]


def is_optional(member: Any) -> bool:
    """Whether a reference step may be absent."""
    return isinstance(member, dict) and member.get("optional", False)


def fits(member: Any, step: Step) -> bool:
    """Whether an observed step satisfies a reference step."""
    if isinstance(member, str):
        return matches(member, step.name, step.kind)
    kind = "TOOL" if "tool" in member else "AGENT"
    return step.kind == kind and matches(member.get("tool", member.get("agent")), step.name, step.kind)


def ways(trajectory: list[Any]) -> list[list[Any]]:
    """Every plain sequence that a trajectory stands for."""
    choices = []
    for element in trajectory:
        members = members_of(element)
        ordered = []
        for kept in product([True, False], repeat=len(members)):
            if all(keep or is_optional(member) for keep, member in zip(kept, members, strict=True)):
                chosen = [member for keep, member in zip(kept, members, strict=True) if keep]
                ordered += [list(order) for order in permutations(chosen)]
        choices.append(ordered)
    return [list(chain.from_iterable(parts)) for parts in product(*choices)]


def is_subsequence(wanted: list[Any], observed: list[Step]) -> bool:
    """Whether the steps are observed in this order, found by trying every place."""
    if not wanted:
        return True
    return any(
        fits(wanted[0], step) and is_subsequence(wanted[1:], observed[at + 1 :]) for at, step in enumerate(observed)
    )


def largest(members: list[Any], observed: list[Step]) -> int:
    """The size of a largest one-to-one matching, found by trying every one."""
    if not members:
        return 0
    best = largest(members[1:], observed)
    for at, step in enumerate(observed):
        if fits(members[0], step):
            best = max(best, 1 + largest(members[1:], observed[:at] + observed[at + 1 :]))
    return best


@settings(max_examples=150, deadline=None)
@given(trajectories.map(plain), st.lists(steps, max_size=5))
def test_modes_and_counts_are_those_of_trying_everything(trajectory: list[Any], observed: list[Step]) -> None:
    sequences = ways(trajectory)
    members = [member for element in trajectory for member in members_of(element)]
    required = [member for member in members if not is_optional(member)]
    matched, matched_required = largest(members, observed), largest(required, observed)

    result = judged(trajectory, observed)

    rows = {row.name.removeprefix("trajectory_match."): row.score for row in result.family}
    assert rows["exact"] == any(
        len(sequence) == len(observed) and all(map(fits, sequence, observed)) for sequence in sequences
    )
    assert rows["in_order"] == any(is_subsequence(sequence, observed) for sequence in sequences)
    assert rows["any_order"] == (matched_required == len(required))
    assert rows["recall"] == (matched_required / len(required) if required else 1)
    assert rows["precision"] == (matched / len(observed) if observed else float(not required))
    needed = len(observed) - (matched - matched_required)
    assert rows["efficiency"] == (min(1.0, len(required) / needed) if needed else float(not required))
    if rows["exact"]:
        assert rows["in_order"] == rows["any_order"] == 1
        assert result.metadata["edit_distance"] == 0


@settings(max_examples=60, deadline=None)
@given(st.data(), st.lists(trajectories, min_size=1, max_size=3), st.lists(steps, max_size=6), st.sampled_from(MODES))
def test_no_row_depends_on_the_order_of_references_members_or_equal_calls(
    data: st.DataObject, references: list[list[Any]], observed: list[Step], mode: str
) -> None:
    named = [{"name": f"r{number}", "steps": trajectory} for number, trajectory in enumerate(references)]
    said = {"match": mode, "ignore": ["c"], "forbidden": [["a", "B"]]}
    shuffled = [
        {
            **reference,
            "steps": [
                {"any_order": data.draw(st.permutations(members_of(element)))} if "any_order" in element else element
                for element in reference["steps"]
            ],
        }
        for reference in data.draw(st.permutations(named))
    ]
    marked = [replace(step, span_id=str(at)) for at, step in enumerate(observed)]
    places = list(range(len(marked)))
    for call in {repr(step) for step in observed}:
        equal = [at for at, step in enumerate(observed) if repr(step) == call]
        for at, other in zip(equal, data.draw(st.permutations(equal)), strict=True):
            places[at] = other

    before = trajectory_match({**said, "references": named}, marked)
    after = trajectory_match({**said, "references": shuffled}, [marked[at] for at in places])

    assert rows_of(after) == rows_of(before)
    assert after.metadata["verdict"] == before.metadata["verdict"]


@settings(max_examples=40, deadline=None)
@given(st.data(), trajectories, st.lists(st.tuples(steps, st.integers(1, 3)), max_size=6))
def test_no_row_depends_on_the_order_of_ingest(
    data: st.DataObject, trajectory: list[Any], observed: list[tuple[Step, int]]
) -> None:
    spans = [CanonicalSpan("t", "root", "CHAIN", "root", start_time_unix_nano=1, output="Done.")]
    for number, (step, start) in enumerate(observed):
        spans.append(
            CanonicalSpan(
                "t",
                f"s{number}",
                step.kind,
                step.name,
                "root",
                start,
                tool_arguments=step.arguments,
                output=step.output,
                status=step.status,
                tool_name=step.name if step.kind == "TOOL" else None,
                agent_name=step.name if step.kind == "AGENT" else None,
            )
        )
    spans.append(CanonicalSpan("t", "llm", "LLM", "chat", "root", 2, output="No.", input_tokens=3))
    config = METRIC.config_model(
        reference_trajectories={
            "references": [{"steps": trajectory}],
            "final_answer": {"contains": "Done"},
            "budget": {"max_tokens": 2},
        }
    )

    before, after = (
        METRIC.score(CanonicalPartition("trace", "t", spans=tuple(order)), config)
        for order in (spans, data.draw(st.permutations(spans)))
    )

    assert after.status == "scored"
    assert after == before


def brute_loops(sequence: str) -> list[Loop]:
    """Every longest run of a block at its shortest, found by trying every place and period."""
    found = []
    size = len(sequence)
    for start in range(size):
        for period in range(1, (size - start) // 3 + 1):
            end = start + period
            while end < size and sequence[end] == sequence[end - period]:
                end += 1
            longest = not start or sequence[start - 1] != sequence[start - 1 + period]
            block = sequence[start : start + period]
            primitive = (block + block).find(block, 1) == period
            if end - start >= 3 * period and longest and primitive:
                found.append(Loop(start, period, (end - start) // period))
    return found


@settings(max_examples=300, deadline=None)
@given(st.text("ab", max_size=24) | st.lists(st.sampled_from(["ab", "abb", "a", "c"]), max_size=14).map("".join))
def test_loops_are_those_of_trying_every_block(sequence: str) -> None:
    assert loops([Step(name) for name in sequence], ()) == brute_loops(sequence)


@pytest.mark.parametrize("size", [200])
def test_large_groups_are_no_problem(size: int) -> None:
    members = [{"tool": f"t{number % 9}", "args": {"n": number}} for number in range(size)]
    observed = [Step(f"t{number % 9}", arguments={"n": number}) for number in reversed(range(size))]

    rows = rows_of(judged([{"any_order": members}], observed))

    assert {name.partition(".")[2]: row[1] for name, row in rows.items() if row[0] == "scored"} == dict.fromkeys(
        [*MODES, "passed", "precision", "recall", "f1", "arguments", "efficiency"], 1.0
    )
