"""The fast aligner against the slow oracle, and properties of every alignment."""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from stepacc_core.alignment import Alignment, align, backward, distance, edit, engine, group_rows, plain, relation
from stepacc_core.model import Step
from stepacc_core.names import fold, matches
from stepacc_core.trajectory import Group, Trajectory, parse_trajectory
from tests.oracle import growth, largest_matching, oracle

FOLDING = ["Get-Weather", "get_weather", "getweather"]
NAMES = [*FOLDING, "a", "A", "b"]

names = st.sampled_from(NAMES)
steps = st.lists(st.builds(Step, names, st.sampled_from(["TOOL", "TOOL", "AGENT"])), max_size=12)
trajectories = (
    st.lists(names | st.lists(names, max_size=5), min_size=1, max_size=7)
    .filter(lambda elements: any(element != [] for element in elements))
    .map(parse_trajectory)
)


def align_by_rows(trajectory: Trajectory, observed: list[Step]) -> Alignment:
    """Align without what is quicker for short sequences, and for plain ones where ways seldom fork."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_SMALL", -1)
        patch.setattr(edit, "plain_edits", lambda *_: None)
        return align(trajectory, observed)


def align_within_bands(trajectory: Trajectory, observed: list[Step]) -> Alignment:
    """Align as if the sequences were long: within bands that are narrow at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distance, "SHORT", -1)
        patch.setattr(distance, "_PLAIN_SLACK", 1)
        patch.setattr(distance, "_NARROW", 1)
        patch.setattr(plain, "_FORKED", 1_000)
        return align(trajectory, observed)


def check_against_oracle(trajectory: Trajectory, observed: list[Step]) -> None:
    """Distance, matches and every entry are the oracle's, whichever way they are found."""
    want = oracle(trajectory, observed)
    given_ = (trajectory.authored(), [(step.name, step.kind) for step in observed])
    for way in (align, align_by_rows, align_within_bands):
        found = way(trajectory, observed)
        assert (found.distance, found.matches) == (want.distance, want.matches), given_
        assert found.entries == want.entries, given_


def check_legal(trajectory: Trajectory, observed: list[Step]) -> None:
    """The entries spell out both sequences, each step once and in its place, at the cost that is claimed."""
    found = align(trajectory, observed)
    entries = found.entries

    assert sum(entry["op"] != "match" for entry in entries) == found.distance
    assert sum(entry["op"] == "match" for entry in entries) == found.matches
    taken = [entry for entry in entries if entry["op"] != "delete"]
    assert [entry["actual_index"] for entry in taken] == list(range(len(observed)))
    assert [entry["actual"] for entry in taken] == [step.name for step in observed]
    wanted = [entry for entry in entries if entry["op"] != "insert"]
    indices = [entry["expected_index"] for entry in wanted]
    assert indices == sorted(indices)
    for index, element in enumerate(trajectory.elements):
        here = sorted(entry["expected"] for entry in wanted if entry["expected_index"] == index)
        assert here == (sorted(element.members) if isinstance(element, Group) else [element])
    for entry in entries:
        check_entry(trajectory, observed, entry)
    for index in {entry["group"] for entry in entries if "group" in entry}:
        check_window(entries, index)


def check_entry(trajectory: Trajectory, observed: list[Step], entry: dict[str, Any]) -> None:
    """One entry says nothing that is not so."""
    keys = ["op", "expected", "actual", "expected_index", "actual_index"]
    assert list(entry) in (keys, [*keys, "group"])
    assert (entry["expected"] is None) == (entry["expected_index"] is None) == (entry["op"] == "insert")
    assert (entry["actual"] is None) == (entry["actual_index"] is None) == (entry["op"] == "delete")
    if entry["op"] in {"match", "substitute"}:
        alike = matches(entry["expected"], entry["actual"], observed[entry["actual_index"]].kind)
        assert alike == (entry["op"] == "match")
    if entry["expected_index"] is not None:
        is_group = isinstance(trajectory.elements[entry["expected_index"]], Group)
        assert ("group" in entry) == is_group
        assert not is_group or entry["group"] == entry["expected_index"]


def check_window(entries: list[dict[str, Any]], index: int) -> None:
    """A group's entries stand together: the window's steps, then what is missing."""
    places = [place for place, entry in enumerate(entries) if entry.get("group") == index]
    assert places == list(range(places[0], places[-1] + 1))
    ops = [entries[place]["op"] for place in places]
    assert "delete" not in ops[: len(ops) - ops.count("delete")]
    assert not ("delete" in ops and "insert" in ops)


@given(trajectories, steps)
def test_every_alignment_is_the_oracles(trajectory: Trajectory, observed: list[Step]) -> None:
    check_against_oracle(trajectory, observed)


@given(trajectories, steps)
def test_every_alignment_is_legal(trajectory: Trajectory, observed: list[Step]) -> None:
    check_legal(trajectory, observed)


@given(trajectories, steps)
def test_repeats_are_byte_equal_and_nothing_is_mutated(trajectory: Trajectory, observed: list[Step]) -> None:
    before = copy.deepcopy((trajectory, observed))

    first, second = align(trajectory, observed), align(trajectory, observed)

    assert json.dumps(first.entries) == json.dumps(second.entries)
    assert (trajectory, observed) == before


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=80), st.lists(st.sampled_from("abcdefgh"), max_size=80)
)
def test_plain_tools_have_the_distance_rapidfuzz_finds(expected: list[str], observed: list[str]) -> None:
    found = align(parse_trajectory(expected), [Step(name.upper()) for name in observed])

    assert found.distance == Levenshtein.distance([fold(name) for name in expected], observed)


@given(st.lists(names, max_size=5), steps)
def test_the_oracles_matchings_are_largest(members: list[str], window: list[Step]) -> None:
    window = window[:6]
    assert growth(members, window)[-1] == largest_matching(members, window)


def test_ten_thousand_random_trajectories() -> None:
    """Agents and tools, groups, duplicates, few names and many foldings: all the oracle's, all legal."""
    rng = random.Random(20_260_101)  # noqa: S311 -- seeded on purpose
    for _ in range(10_000):
        alphabet = rng.choice([["a"], ["a", "b"], FOLDING, NAMES, NAMES])
        trajectory = random_trajectory(rng, alphabet, elements=rng.randint(1, 6), members=4, groups=rng.random())
        observed = random_steps(rng, [*alphabet, "x"], rng.randint(0, 9), agents=rng.choice([0, 0.3]))
        check_against_oracle(trajectory, observed)
        check_legal(trajectory, observed)


def random_trajectory(
    rng: random.Random, alphabet: list[str], *, elements: int, members: int, groups: float
) -> Trajectory:
    """Elements over an alphabet, with a share of groups, empty ones too."""
    made: list[str | list[str]] = [
        rng.choices(alphabet, k=rng.randint(0, members)) if rng.random() < groups else rng.choice(alphabet)
        for _ in range(elements)
    ]
    if not any(made):
        made.append(rng.choice(alphabet))
    return parse_trajectory(made)


def random_steps(rng: random.Random, alphabet: list[str], size: int, *, agents: float = 0.0) -> list[Step]:
    """Observed steps over an alphabet, with a share of agents."""
    return [Step(rng.choice(alphabet), "AGENT" if rng.random() < agents else "TOOL") for _ in range(size)]


def edited(rng: random.Random, trajectory: Trajectory, alphabet: list[str], rate: float) -> list[Step]:
    """What a run close to the trajectory would do: groups shuffled, some steps lost, changed or added."""
    done: list[str] = []
    for element in trajectory.elements:
        members = [element] if isinstance(element, str) else list(element.members)
        rng.shuffle(members)
        for name in members:
            draw = rng.random()
            if draw > rate / 3:
                done.append(name if draw > 2 * rate / 3 else rng.choice(alphabet))
            if draw < rate / 4:
                done.append(rng.choice(alphabet))
    return [Step(name) for name in done]


def plain_steps(rng: random.Random) -> tuple[Trajectory, list[Step]]:
    """A long plain trajectory and a run close to it."""
    alphabet = [f"t{n}" for n in range(rng.choice([2, 4, 30]))]
    trajectory = random_trajectory(rng, alphabet, elements=rng.randint(30, 90), members=0, groups=0)
    return trajectory, edited(rng, trajectory, alphabet, rng.choice([0, 0.1, 0.4]))


def few_groups(rng: random.Random) -> tuple[Trajectory, list[Step]]:
    """Long plain stretches with groups between, and a run close to them: narrow bands."""
    alphabet = [f"t{n}" for n in range(rng.choice([3, 8, 30]))]
    trajectory = random_trajectory(rng, alphabet, elements=rng.randint(20, 60), members=5, groups=0.15)
    return trajectory, edited(rng, trajectory, alphabet, rng.choice([0.05, 0.2, 0.5]))


def only_groups(rng: random.Random) -> tuple[Trajectory, list[Step]]:
    """Groups next to groups, empty ones between."""
    alphabet = [f"t{n}" for n in range(rng.choice([2, 4, 12]))]
    trajectory = random_trajectory(rng, alphabet, elements=rng.randint(4, 16), members=6, groups=0.95)
    return trajectory, edited(rng, trajectory, alphabet, rng.choice([0, 0.1, 0.4]))


def long_windows(rng: random.Random) -> tuple[Trajectory, list[Step]]:
    """Few expected steps in a long run: windows longer than their groups, the whole table in the band."""
    alphabet = ["a", "b", "c", *[f"t{n}" for n in range(rng.choice([0, 3, 9]))]]
    trajectory = random_trajectory(rng, alphabet, elements=rng.randint(1, 6), members=8, groups=0.6)
    return trajectory, random_steps(rng, alphabet, rng.randint(30, 60))


def mixed_kinds(rng: random.Random) -> tuple[Trajectory, list[Step]]:
    """Agents and tools of one folded name meet in groups: circuits have to be searched."""
    trajectory = random_trajectory(rng, FOLDING, elements=rng.randint(2, 8), members=8, groups=0.7)
    return trajectory, random_steps(rng, [*FOLDING, "x"], rng.randint(10, 40), agents=0.5)


def front_alike(rng: random.Random) -> tuple[Trajectory, list[Step]]:
    """Equal fronts before groups that are mostly missing, where trimming the front has to be given up."""
    front = rng.choices("ab", k=rng.randint(8, 12))
    group = rng.choices("cd", k=rng.randint(1, 3))
    rest = rng.choices("abc", k=rng.randint(1, 5))
    observed = [*front, *rng.choices("abcx", k=rng.randint(0, 3))]
    return parse_trajectory([*front, group, *rest]), [Step(name) for name in observed]


def shifted(rng: random.Random) -> tuple[Trajectory, list[Step]]:
    """A stretch lost at one end and as much added at the other: the best alignment leaves every narrow band."""
    trajectory = random_trajectory(rng, NAMES[3:] + list("cdefgh"), elements=rng.randint(16, 24), members=3, groups=0.3)
    done = edited(rng, trajectory, ["x"], 0)
    lost, end = rng.randint(5, 10), len(done) - rng.randint(0, 4)
    added = random_steps(rng, ["x", "y"], lost)
    if rng.random() < 0.5:
        return trajectory, [*done[lost:end], *added, *done[end:]]
    start = len(done) - end
    return trajectory, [*done[:start], *added, *done[start:-lost]]


@pytest.mark.parametrize(
    ("kind", "times"),
    [
        (plain_steps, 100),
        (few_groups, 60),
        (only_groups, 100),
        (long_windows, 60),
        (mixed_kinds, 150),
        (front_alike, 1_000),
        (shifted, 120),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_fast_path_at_medium_size(
    kind: Callable[[random.Random], tuple[Trajectory, list[Step]]], times: int
) -> None:
    rng = random.Random(7)  # noqa: S311 -- seeded on purpose
    for _ in range(times):
        trajectory, observed = kind(rng)
        check_against_oracle(trajectory, observed)
        check_legal(trajectory, observed)


@pytest.mark.parametrize("kind", [plain_steps, few_groups, long_windows], ids=lambda kind: kind.__name__)
def test_long_rows_are_handled_in_blocks(
    kind: Callable[[random.Random], tuple[Trajectory, list[Step]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, but rows count as long from a few columns on, and number lists are packed from a few numbers on.

    What is quicker for short sequences gives up soon.
    """
    monkeypatch.setattr(backward, "_BLOCK", 5)
    monkeypatch.setattr(group_rows, "_MANY", 5)
    monkeypatch.setattr(distance, "SHORT", 5)
    monkeypatch.setattr(distance, "_PLAIN_SLACK", 3)
    monkeypatch.setattr(distance, "_LOOK", 4)
    monkeypatch.setattr(relation, "_SHORT", 5)
    monkeypatch.setattr(plain, "_FORKED", 1)
    monkeypatch.setattr(engine, "_WIDEST", 3)
    rng = random.Random(8)  # noqa: S311 -- seeded on purpose
    for _ in range(40):
        trajectory, observed = kind(rng)
        check_against_oracle(trajectory, observed)
