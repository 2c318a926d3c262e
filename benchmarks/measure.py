"""Timing for the benchmarks: paired runs, exponents, and the part of a document that a script writes.

Times are CPU seconds of this process, so that other work on the machine counts little; what is compared is run in
turn, so that a machine that grows slower slows both.
"""

import datetime as dt
import importlib.metadata
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
_ROUND = 0.01
"""Seconds that a round of a quick call takes at least: the clock of the CPU time is coarse."""


def paired(calls: Mapping[str, Callable[[], object]], seconds: float, rounds: int = 3) -> dict[str, list[float]]:
    """Time calls in turn.

    Args:
        calls: what is timed, by name; each is called once before.
        seconds: for how long in all, unless fewer rounds than wanted are done by then.
        rounds: how many rounds there are at least.

    Returns:
        CPU seconds of one call in each round, by name.
    """
    repeats = {}
    for name, call in calls.items():
        start = time.process_time()
        call()
        repeats[name] = max(1, math.ceil(_ROUND / max(time.process_time() - start, 1e-6)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.process_time() + seconds
    done = 0
    while done < rounds or time.process_time() < end:
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(repeats[name]):
                call()
            times[name].append((time.process_time() - start) / repeats[name])
        done += 1
    return times


def ratio(times: Sequence[float], others: Sequence[float]) -> float:
    """Return the median of the ratios round by round."""
    return statistics.median([mine / theirs for mine, theirs in zip(times, others, strict=True)])


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Return the power of the size with which the time grows: the slope of the least squares in logarithms."""
    return statistics.linear_regression([math.log(size) for size in sizes], [math.log(each) for each in times]).slope


def shown(seconds: float) -> str:
    """Return a time with three digits and its unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def circumstances(command: str, packages: Sequence[str], *, cpu: bool = True) -> str:
    """Return a sentence on when, where and with what was measured."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    load = os.getloadavg()[1]
    return (
        f"Measured on {dt.datetime.now(tz=dt.UTC).date()} by `{command}`, on {os.cpu_count()} cores of "
        f"{_processor()}, with Python {platform.python_version()}, {versions}. "
        f"The load average (5 minutes) was {load:.1f} at the end. "
        f"Times are {'CPU times' if cpu else 'of the clock'}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def write_part(name: str, text: str, page: Path = PAGE) -> None:
    """Replace what stands between the markers of a part of the page.

    Raises:
        ValueError: the page has no such part.
    """
    begin, end = f"<!-- {name}: written by a script -->", f"<!-- {name}: end -->"
    page_text = page.read_text(encoding="utf-8")
    before, found, rest = page_text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        msg = f"{page.name} has no part between {begin} and {end}; add the two lines where the part is to stand."
        raise ValueError(msg)
    page.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}", encoding="utf-8")
