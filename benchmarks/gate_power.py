"""How often a gate tells of a drop against a baseline, where there is none and where there is one.

Prints, for some numbers of tasks and runs, the share of simulated data sets in which the scores are told to have fallen
beyond noise at alpha 0.05. `python benchmarks/gate_power.py` takes about two minutes; docs/gate.md has its figures.
"""

from itertools import product

import numpy as np

from stepacc_core.comparison.baselines import compare
from stepacc_core.comparison.observations import Observation

SETS = 500
DESIGNS = ((5, 6), (10, 5), (20, 1))
DROPS = ((0.0, 0.0), (0.1, 0.0), (0.2, 0.0), (0.3, 0.0), (0.1, 0.1))
"""True drop, and margin."""
SPREAD = 6
"""How narrow graded scores of one task are: the sum of the parameters of their beta distribution."""


def runs(task: int, side: str, scores: np.ndarray) -> list[Observation]:
    """Return runs of a task."""
    return [
        Observation("trace", f"{task} {side} {place}", "scored", float(score), f"task {task}", "expectation")
        for place, score in enumerate(scores)
    ]


def told(drop: float, margin: float, tasks: int, count: int, *, graded: bool) -> float:
    """Return the share of data sets in which a drop is told, overall or of a task."""
    rng = np.random.default_rng(7)

    def scores(rate: float) -> np.ndarray:
        drawn: np.ndarray = rng.beta(rate * SPREAD, (1 - rate) * SPREAD, count) if graded else rng.random(count) < rate
        return drawn

    found = 0
    for _ in range(SETS):
        sides: tuple[list[Observation], list[Observation]] = ([], [])
        for task, rate in enumerate(np.linspace(0.6, 0.9, tasks)):
            sides[0].extend(runs(task, "before", scores(rate)))
            sides[1].extend(runs(task, "after", scores(rate - drop)))
        compared = compare(*sides, margin=margin)
        found += (compared.p is not None and compared.p <= compared.alpha) or bool(compared.worse_tasks)
    return found / SETS


def main() -> None:
    """Print a row for each design."""
    print(f"{'tasks':>5} {'runs':>5} {'scores':>7}", *(f"{drop:.1f}/{margin:.1f}" for drop, margin in DROPS))
    for graded, (tasks, count) in product((False, True), DESIGNS):
        shares = [told(drop, margin, tasks, count, graded=graded) for drop, margin in DROPS]
        name = "graded" if graded else "0 or 1"
        print(f"{tasks:>5} {count:>5} {name:>7}", *(f"{share:7.3f}" for share in shares), flush=True)


if __name__ == "__main__":
    main()
