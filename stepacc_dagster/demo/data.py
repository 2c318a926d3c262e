"""The demo's package data: recorded traces moved to recent days, annotations, and the source's `defs.yaml`."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from importlib import resources

from stepacc_core.annotation_files import parse_annotations
from stepacc_core.annotations import Annotation
from stepacc_core.errors import ReadError
from stepacc_core.model import RawSpan
from stepacc_core.otlp import read_otlp_lines
from stepacc_dagster.windows import window_containing

SOURCE = "demo"
DAYS_AGO = 2
"""The traces of the last day start this many days before the demo first runs."""

_DAY_NS = 86_400_000_000_000
_FOLDER = resources.files("stepacc_dagster.demo").joinpath("data")


def recorded_spans() -> list[RawSpan]:
    """Return the spans as shipped; they lie on six days in a row."""
    lines = _FOLDER.joinpath("traces.otlp.jsonl").read_text(encoding="utf-8").splitlines()
    spans = []
    for span in read_otlp_lines(lines):
        if isinstance(span, ReadError):
            raise span
        spans.append(span)
    return spans


def annotations() -> tuple[Annotation, ...]:
    """Return the expected steps of the demo's tasks."""
    text = _FOLDER.joinpath("annotations.yaml").read_text(encoding="utf-8")
    return parse_annotations(text, "yaml", name="the demo's annotations.yaml")


def defs_yaml(start_date: date) -> str:
    """Return the demo source's `defs.yaml`, with the first day of its traces."""
    return _FOLDER.joinpath("defs.yaml").read_text(encoding="utf-8").replace("{start_date}", start_date.isoformat())


def is_as_shipped(text: str) -> bool:
    """Tell whether a `defs.yaml` is the demo's own, whatever its first day."""
    day = re.search(r'^  start_date: "(\d{4}-\d\d-\d\d)"$', text, re.MULTILINE)
    return day is not None and text == defs_yaml(date.fromisoformat(day[1]))


def days_of(spans: Sequence[RawSpan]) -> list[date]:
    """Return the days on which spans start, UTC, in order."""
    starts = {span.start_time_unix_nano // _DAY_NS for span in spans if span.start_time_unix_nano}
    return [date.fromisoformat(window_containing(day * _DAY_NS, "daily").key) for day in sorted(starts)]


def moved(spans: Sequence[RawSpan], days: timedelta) -> list[RawSpan]:
    """Return the spans with every time moved by a whole number of days."""
    shift = days.days * _DAY_NS
    return [
        replace(
            span,
            start_time_unix_nano=_later(span.start_time_unix_nano, shift),
            end_time_unix_nano=_later(span.end_time_unix_nano, shift),
            events=tuple(replace(event, time_unix_nano=_later(event.time_unix_nano, shift)) for event in span.events),
        )
        for span in spans
    ]


def _later(time: int | None, shift: int) -> int | None:
    return time + shift if time else time
