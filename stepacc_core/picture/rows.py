"""The one model that every face of a picture is drawn from: safe text, one row for each entry of an alignment."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from stepacc_core.picture.characters import printable

_KEPT = {"match": 2}
_KEPT_OTHERS = 4
_FOLDED_FROM = {"match": 7}
_FOLDED_OTHERS = 13
"""A run of as many entries of one kind is folded to a few at each end: what is no match is worth more room."""

_OTHERS = "*"
"""Name of the check that no argument is given which nobody named."""

_LONGEST_VALUE = 60
"""Characters of an argument that a picture shows."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An argument that is not as expected, both sides as JSON text."""

    name: str
    expected: str
    observed: str

    def __str__(self) -> str:
        """Return the difference in words."""
        return f"{self.name}: expected {self.expected}, got {self.observed}"


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of an alignment.

    `expected` and `observed` are names without control characters, None where there is nothing. `group` is the index of
    the unordered group that the entry belongs to. `trace` tells the trace it ran in, None where the metadata does not.
    `attempts` counts the failed ones before it that were folded into it.
    """

    op: str
    expected: str | None
    observed: str | None
    group: int | None = None
    trace: str | None = None
    optional: bool = False
    attempts: int = 0
    differences: tuple[Difference, ...] = ()

    @property
    def notable(self) -> bool:
        """Whether there is more to tell than the operation."""
        return bool(self.differences or self.attempts)


@dataclass(frozen=True, slots=True)
class Fold:
    """Entries told by their number alone: a run of one kind, in one group and one trace, or `OMITTED`, of any kind."""

    op: str
    count: int
    group: int | None = None
    trace: str | None = None


Shown = Row | Fold

OMITTED = "omitted"
"""In the place of an operation: the middle of a picture that is too long to show."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """What of the bracket around an unordered group an entry draws."""

    inside: bool
    opens: bool
    closes: bool


def bracketed(shown: Sequence[Shown]) -> Iterator[tuple[Shown, Bracket]]:
    """Yield each entry with its part of a bracket, which stays open from trace to trace of a session."""
    for group, entries in groupby(shown, key=lambda row: row.group):
        members = list(entries)
        for index, entry in enumerate(members):
            inside = group is not None
            yield entry, Bracket(inside, inside and index == 0, inside and index == len(members) - 1)


def has_alignment(metadata: Mapping[str, Any]) -> bool:
    """Tell whether metadata, of any metric, hold an alignment in the form of `agent.step_accuracy`."""
    steps = metadata.get("steps")
    return isinstance(steps, list | tuple) and all(
        isinstance(entry, Mapping) and isinstance(entry.get("op"), str) for entry in steps
    )


def rows_of(metadata: Mapping[str, Any]) -> tuple[Row, ...]:
    """Return the rows of the alignment in a result's metadata, none folded.

    Args:
        metadata: of `agent.step_accuracy` or `agent.trajectory_match`, any version; see `has_alignment`. Where it holds
            `traces` (`[{trace_id, steps}, ...]`, the observed steps of each stretch in turn), rows know their trace.
    """
    traces = _trace_of_each(metadata.get("traces"))
    rows: list[Row] = []
    trace = traces[0] if traces else None
    position = 0
    for entry in metadata["steps"]:
        observed = _name(entry.get("actual"))
        if observed is not None:
            at = entry.get("actual_index")
            position = at if isinstance(at, int) else position
            trace = traces[position] if 0 <= position < len(traces) else trace
            position += 1
        group, attempts = entry.get("group"), entry.get("attempts")
        rows.append(
            Row(
                op=printable(entry["op"]),
                expected=_name(entry.get("expected")),
                observed=observed,
                group=group if isinstance(group, int) else None,
                trace=trace,
                optional=bool(entry.get("optional")),
                attempts=attempts if isinstance(attempts, int) else 0,
                differences=tuple(_differences(entry.get("checks"))),
            )
        )
    extra = metadata.get("extra_steps")
    for name in extra if isinstance(extra, list | tuple) else ():
        trace = traces[position] if position < len(traces) else trace
        position += 1
        rows.append(Row("insert", None, _name(name), trace=trace))
    return tuple(rows)


def folded(rows: Sequence[Row], longest: int) -> tuple[Shown, ...]:
    """Fold long runs of one kind, and then the middle of what is still longer than `longest` entries.

    An entry whose arguments differ, or that took attempts, is in no run.
    """
    shown: list[Shown] = []
    for _, entries in groupby(rows, _kind):
        run = list(entries)
        op = run[0].op
        if run[0].notable or len(run) < _FOLDED_FROM.get(op, _FOLDED_OTHERS):
            shown += run
            continue
        kept = _KEPT.get(op, _KEPT_OTHERS)
        fold = Fold(op, len(run) - 2 * kept, run[0].group, run[0].trace)
        shown += [*run[:kept], fold, *run[-kept:]]
    if len(shown) <= longest:
        return tuple(shown)
    head, tail = (longest + 1) // 2, len(shown) - longest // 2
    left_out = sum(entry.count if isinstance(entry, Fold) else 1 for entry in shown[head:tail])
    return (*shown[:head], Fold(OMITTED, left_out, trace=shown[head].trace), *shown[tail:])


def _kind(row: Row) -> tuple[Any, ...]:
    return row.op, row.group, row.trace, row.optional, row.notable


def _trace_of_each(traces: Any) -> list[str]:
    found: list[str] = []
    for stretch in traces if isinstance(traces, list | tuple) else ():
        match stretch:
            case {"trace_id": str(trace), "steps": int(count)}:
                found += [printable(trace)] * count
            case _:
                return []
    return found


def _name(value: Any) -> str | None:
    """Return a step's name; a reference may write a step as an object that names a tool or an agent."""
    if isinstance(value, Mapping):
        value = next((value[key] for key in ("tool", "agent", "name") if key in value), value)
    if value is None:
        return None
    return printable(value if isinstance(value, str) else _json(value)) or '""'


def _differences(checks: Any) -> Iterator[Difference]:
    for check in checks if isinstance(checks, list | tuple) else ():
        if isinstance(check, Mapping) and check.get("holds") is False:
            name, given = printable(str(check.get("name"))), check.get("actual")
            observed = "nothing" if given is None else _json(given)
            if name == _OTHERS:
                yield Difference("others", "none", observed)
            else:
                yield Difference(name, _json(check.get("expected")), observed)


def _json(value: Any) -> str:
    text = printable(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
