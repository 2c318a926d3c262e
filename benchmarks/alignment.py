"""How long a full result of `agent.step_accuracy` takes, beside its yardsticks, and how that grows.

Run `python -m benchmarks.alignment`. It writes its part of `docs/performance.md` (`--print` only prints it) and judges
nothing. The yardsticks: RapidFuzz's edit operations in C++, which know neither groups nor folded names, are the limit;
the length of the longest common subsequence by the usual table, as evaluators in Python have it, gives no alignment;
the slow oracle of the tests does all that is done here.
"""

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from rapidfuzz.distance import Levenshtein

from benchmarks.alignment_cases import Case, mixed, sample
from benchmarks.measure import circumstances, exponent, paired, ratio, shown, table, write_part
from benchmarks.worst_cases import worst_cases
from stepacc_core import step_accuracy
from stepacc_core.alignment import align
from stepacc_core.trajectory import parse_trajectory
from tests.oracle import oracle

_SECONDS = 0.2
_GROWTH_SIZES = (750, 1_500, 3_000, 6_000, 12_000)
_GROWTH_EDITS = 20
_TABLE_UP_TO = 1_000
"""Steps up to which the tables in Python are waited for; the oracle up to 20."""


def main() -> None:
    """Measure, and write or print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--print", action="store_true", help="print the part of the page instead of writing it")
    options = parser.parse_args()
    times, growth, worst = times_part(), growth_part(), worst_cases()
    where = circumstances("python -m benchmarks.alignment", ["rapidfuzz", "numpy", "scipy"])
    text = f"{where}\n\n{times}\n\n{growth}\n\n{worst}"
    if options.print:
        print(text)
    else:
        write_part("alignment", text)


def times_part() -> str:
    """Return the table of full results."""
    lines = []
    for size in (5, 20, 100, 1_000, 10_000):
        for groups in (0, 5, 50):
            if groups * (12 if size >= 100 else 3) > size:
                continue
            lines += [times_line(size, groups, rate) for rate in (0.0, 0.1, 0.5)]
    head = ["steps", "groups", "edits", "result", "alignment", "RapidFuzz", "ratio", "table (LCS)", "ratio", "oracle"]
    return (
        "Medians of a full result with metadata, of the alignment in it, and of the yardsticks. A ratio is the median, "
        "round by round, of the result's time by RapidFuzz's, and of the table's by the result's.\n\n"
        + table(head, lines)
    )


def times_line(size: int, groups: int, rate: float) -> list[str]:
    """Return one line of the table."""
    expected, steps = sample(size, groups, rate)
    trajectory = parse_trajectory(expected)
    names = [step.name for step in steps]
    calls: dict[str, Callable[[], object]] = {
        "result": partial(step_accuracy, expected, steps),
        "alignment": partial(align, trajectory, steps),
    }
    if not groups:
        calls["RapidFuzz"] = partial(edit_operations, expected, names)
        if size <= _TABLE_UP_TO:
            calls["table"] = partial(common_length, expected, names)
    if size <= 20:
        calls["oracle"] = partial(oracle, trajectory, steps)
    times = paired(calls, _SECONDS)
    cells = [f"{size:,}", str(groups), f"{rate:.0%}", *[median(times, name) for name in ("result", "alignment")]]
    cells += [median(times, "RapidFuzz"), f"{ratio(times['result'], times['RapidFuzz']):.1f}" if not groups else ""]
    cells += [median(times, "table"), f"{ratio(times['table'], times['result']):.1f}" if "table" in times else ""]
    return [*cells, median(times, "oracle")]


def median(times: dict[str, list[float]], name: str) -> str:
    """Return a median for the table, nothing where it was not measured."""
    return shown(statistics.median(times[name])) if name in times else ""


def edit_operations(expected: list[Any], observed: list[str]) -> object:
    """Align as RapidFuzz does, with all operations as objects."""
    return Levenshtein.editops(expected, observed).as_list()


def common_length(expected: list[Any], observed: list[str]) -> int:
    """Return the length of the longest common subsequence, by the usual table of which one row is kept."""
    before = [0] * (len(observed) + 1)
    for row in range(len(expected)):
        here = [0] * (len(observed) + 1)
        for column in range(len(observed)):
            if expected[row] == observed[column]:
                here[column + 1] = before[column] + 1
            else:
                here[column + 1] = max(before[column + 1], here[column])
        before = here
    return before[-1]


def growth_part() -> str:
    """Return the table of exponents."""
    kinds: list[tuple[str, Callable[[int], Case]]] = [
        ("plain", lambda size: sample(size, 0, _GROWTH_EDITS / size)),
        ("50 groups of 12", lambda size: sample(size, 50, _GROWTH_EDITS / size)),
        ("50 groups of 12, agents and tools of one name", lambda size: mixed(size, 50, _GROWTH_EDITS)),
    ]
    lines = []
    for kind, make in kinds:
        cases = {str(size): make(size) for size in _GROWTH_SIZES}
        times = paired({size: partial(step_accuracy, *case) for size, case in cases.items()}, _SECONDS)
        medians = [statistics.median(each) for each in times.values()]
        lines.append([kind, *[shown(each) for each in medians], f"{exponent(_GROWTH_SIZES, medians):.2f}"])
    return f"How the time of a result grows with the steps, at {_GROWTH_EDITS} edits:\n\n" + table(
        ["kind", *[f"{size:,}" for size in _GROWTH_SIZES], "exponent"], lines
    )


if __name__ == "__main__":
    main()
