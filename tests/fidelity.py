"""How many recorded traces give their true tool steps; run by `make fidelity` and checked by `test_fidelity.py`.

`tests/data/traces/manifest.json` holds what the scripted models really asked for: a list a user turn, a nested list
for calls of one completion (any order), `@x` for control passing to agent x (left out here), `x(error)` for a call
that failed.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepacc_core.errors import ReadError
from stepacc_core.log_records import join_logs
from stepacc_core.model import CanonicalTrace, RawSpan, Step
from stepacc_core.otlp import read_otlp_lines, read_otlp_log_lines
from stepacc_core.reading import read_traces, trace_partition
from stepacc_core.steps import collect_steps, not_applicable_reason

TRACES = Path(__file__).parent / "data" / "traces"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was read of one file: its tool steps, why there are none, and the difference to the truth."""

    file: str
    difference: str | None
    reasons: tuple[str, ...]
    gaps: frozenset[str]

    @property
    def right(self) -> bool:
        """Tell whether the tool steps are the true calls."""
        return self.difference is None


def manifest() -> list[dict[str, Any]]:
    """Return the entries of the recorded files."""
    entries: list[dict[str, Any]] = json.loads((TRACES / "manifest.json").read_text("utf-8"))["files"]
    return entries


def raw_spans(file: str) -> list[RawSpan]:
    """Read a recorded file, with its log records where there are any; it must be free of errors."""
    spans = _good(read_otlp_lines((TRACES / file).read_text("utf-8").splitlines()))
    logs = TRACES / file.replace(".otlp.jsonl", ".otlp-logs.jsonl")
    if not logs.exists():
        return spans
    return list(join_logs(spans, _good(read_otlp_log_lines(logs.read_text("utf-8").splitlines()))))


def _good(found: Iterator[Any]) -> list[Any]:
    items = list(found)
    errors = [str(item) for item in items if isinstance(item, ReadError)]
    if errors:
        raise AssertionError(errors)
    return items


def traces(file: str) -> tuple[CanonicalTrace, ...]:
    """Read the traces of a recorded file."""
    return read_traces(raw_spans(file))


def outcome(entry: dict[str, Any]) -> Outcome:
    """Read one recorded file and compare its tool steps with the true calls."""
    partitions = [trace_partition(trace) for trace in traces(entry["file"])]
    tools = [s for p in partitions for s in collect_steps(p) if s.kind == "TOOL"]
    reasons = tuple(r for p in partitions if (r := not_applicable_reason(p)) is not None)
    gaps = frozenset(gap.kind for p in partitions for gap in p.gaps)
    return Outcome(entry["file"], difference(entry["true_calls"], tools), reasons, gaps)


def difference(true_calls: list[list[Any]], steps: list[Step]) -> str | None:
    """Return what is different, or None where the steps are the true calls."""
    at = 0
    for expected in (element for turn in true_calls for element in turn):
        group = [expected] if isinstance(expected, str) else expected
        calls = [_call(name) for name in group if not name.startswith("@")]
        taken = [(step.name, step.status == "ERROR") for step in steps[at : at + len(calls)]]
        failures = any(failed for _, failed in calls)
        seen = taken if failures else [(name, False) for name, _ in taken]
        if Counter(seen) != Counter(calls):
            return f"expected {group}, read {[step.name for step in steps[at:]]}"
        at += len(calls)
    return None if at == len(steps) else f"read beyond the true calls: {[step.name for step in steps[at:]]}"


def _call(written: str) -> tuple[str, bool]:
    return written.removesuffix("(error)"), written.endswith("(error)")


def main() -> int:
    """Print the count and every difference."""
    outcomes = [outcome(entry) for entry in manifest()]
    right = sum(o.right for o in outcomes)
    lines = [f"{right} of {len(outcomes)} recorded files give their true tool steps"]
    for each in outcomes:
        if not each.right:
            told = ", ".join(sorted({*each.reasons, *(each.gaps & {"calls_not_recorded"})}))
            lines.append(f"  {each.file}: {each.difference}" + (f" (told: {told})" if told else ""))
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
