"""Set stepacc beside other evaluators of trajectories, on twelve tiny inputs and on speed.

Run `make peers`, which installs them into an environment of their own and writes the tables of `docs/peers.md`, or
`python -m benchmarks.peers PYTHON`, where PYTHON is that of an environment that has them. It judges nothing.
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure import circumstances, shown, table, write_part
from benchmarks.peers.inputs import SIZES, TINY, long_pair
from stepacc_core import Result, Step, step_accuracy, trajectory_match

_PAGE = Path(__file__).parents[2] / "docs" / "peers.md"
_RIVALS = Path(__file__).with_name("rivals.py")
_MEMBERS = ("exact", "in_order", "any_order", "f1")
_ROUNDS = 7
_OFFLINE = {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "OPENAI_API_KEY": "none", "HF_HUB_OFFLINE": "1"}
"""What keeps the others from asking the network; none of what is asked here needs a model."""


def main() -> None:
    """Ask all, and write or print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="the Python of the environment that has the others")
    parser.add_argument("--print", action="store_true", help="print the tables instead of writing them")
    given = parser.parse_args()
    rivals = asked(given.python)
    text = "\n\n".join([versions(rivals), said_table(rivals), seconds_table(rivals)])
    if given.print:
        print(text)
    else:
        write_part("peers", text, _PAGE)


def asked(python: str) -> dict[str, Any]:
    """Return what `rivals` prints."""
    done = subprocess.run(  # noqa: S603 (our own script)
        [python, str(_RIVALS)], env={**os.environ, **_OFFLINE}, capture_output=True, text=True, check=True
    )
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return document


def versions(rivals: Mapping[str, Any]) -> str:
    """Return when, where and with what it was run."""
    others = ", ".join(f"{name} {version}" for name, version in rivals["versions"].items())
    missing = "".join(f" {name} could not be asked: {why}." for name, why in rivals["missing"].items())
    return f"{circumstances('make peers', ['pydantic'])} The others: {others}.{missing}"


def said_table(rivals: Mapping[str, Any]) -> str:
    """Return what each says of the tiny inputs."""
    head = ["", *(f"{name}<br>{_shown(pair[0])}<br>{_shown(pair[1])}" for name, pair in TINY.items())]
    own = {"**agent.step_accuracy**": [_accuracy(*pair) for pair in TINY.values()]}
    own |= {f"**trajectory_match.{member}**": [_member(member, *pair) for pair in TINY.values()] for member in _MEMBERS}
    lines = [[name, *map(_cell, answers)] for name, answers in own.items()]
    lines += [[name, *map(_cell, answers.values())] for name, answers in rivals["said"].items()]
    return "The first line of a column is the case, the second what is expected, the third what was observed.\n\n" + (
        table(head, lines)
    )


def seconds_table(rivals: Mapping[str, Any]) -> str:
    """Return how long each takes."""
    head = ["", *(f"{steps:,} steps" for steps in SIZES)]
    own = {"**agent.step_accuracy**": _times(_accuracy_call), "**agent.trajectory_match**": _times(_match_call)}
    lines = [[name, *map(shown, times)] for name, times in own.items()]
    for name, times in rivals["seconds"].items():
        lines.append([name, *("-" if each is None else shown(each) for each in times)])
    return (
        "One call, every tenth step another one than expected, names only; the metrics of stepacc give the alignment "
        "and the metadata too. Not every line does the same: those that are linear compare places or counts, and "
        "cannot find a step that has moved.\n\n" + table(head, lines)
    )


def _accuracy(expected: str, observed: str) -> float | str:
    return _said(step_accuracy([*expected], [Step(name) for name in observed]))


def _member(member: str, expected: str, observed: str) -> float | str:
    reference = {"references": [{"name": "only", "steps": [*expected]}]}
    result = trajectory_match(reference, [Step(name) for name in observed])
    [found] = [each for each in result.family if each.name == f"trajectory_match.{member}"]
    return found.status if found.score is None else found.score


def _said(result: Result) -> float | str:
    return result.code or result.status if result.score is None else result.score


def _accuracy_call(expected: list[str], steps: list[Step]) -> Callable[[], object]:
    return lambda: step_accuracy(expected, steps)


def _match_call(expected: list[str], steps: list[Step]) -> Callable[[], object]:
    return lambda: trajectory_match(expected, steps)


def _times(make: Callable[[list[str], list[Step]], Callable[[], object]]) -> list[float]:
    found = []
    for steps in SIZES:
        expected, observed = long_pair(steps)
        call = make(expected, [Step(name) for name in observed])
        call()
        times = []
        for _ in range(_ROUNDS):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
        found.append(statistics.median(times))
    return found


def _shown(names: str) -> str:
    return names or "-"


def _cell(answer: float | str) -> str:
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    return answer if isinstance(answer, str) else f"{answer:.2f}"


if __name__ == "__main__":
    main()
