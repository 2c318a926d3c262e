"""Recorded traces with anything in their JSON go through door, Postgres, ingest and scoring: never a lost batch."""

import json
import random
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_core.reading import canonicalise, trace_partition
from stepacc_core.steps import describe
from stepacc_dagster.doors.otlp_http import read_request
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.ingest import ingest_window
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.raw_spans import land_spans, landed_windows, read_window_spans
from stepacc_dagster.stores.otel_spans import OtelSpansStore
from stepacc_dagster.windows import window_of
from tests.fidelity import TRACES, manifest

SOURCE = Source("spoilt", "2026-11-30")
LINES = [line for entry in manifest()[::4] for line in (TRACES / entry["file"]).read_text("utf-8").splitlines() if line]
SEEDS = 6

_DEEP: Any = "x"
for _ in range(260):
    _DEEP = [_DEEP]
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        7,
        2**31,
        2**63,
        -(2**70),
        10**400,
        0.5,
        -1e300,
        "",
        " ",
        "x",
        "\x00",
        "a\x00b",
        "\ud800",
    ),
    *("x" * 1_000_000, "{", "[1, ", "{'a': 1e999}", "NaN", "{'k': '\\ud800'}", "[" * 5_000, '{"a":' * 5_000, "🙂" * 99),
    *('{"tool_calls": {"name": []}}', "[[[]]]", "{}", [], {}, [[]], {"": {"": []}}, {"\x00": "\x00"}, _DEEP),
    *(
        {"stringValue": 1},
        {"arrayValue": {"values": {}}},
        {"kvlistValue": {"values": [{"key": "a"}]}},
        {"intValue": "x"},
    ),
)


def spoil(value: Any, chance: random.Random, share: float) -> Any:
    """Return JSON with some values exchanged for others, some keys dropped and some items doubled, at any depth."""
    if chance.random() < share:
        return chance.choice(VALUES)
    if isinstance(value, list):
        items = [spoil(item, chance, share) for item in value if chance.random() > share]
        return items * 2 if chance.random() < share else items
    if isinstance(value, dict):
        return {
            chance.choice(("", "\x00", key.upper())) if chance.random() < share / 4 else key: spoil(item, chance, share)
            for key, item in value.items()
            if chance.random() > share / 4
        }
    if isinstance(value, str) and value.startswith(("{", "[")) and chance.random() < share * 5:
        return _inside(value, chance, share)
    return value


def _inside(written: str, chance: random.Random, share: float) -> str:
    """Spoil the JSON inside text, as most attributes hold it, or cut it off."""
    try:
        held = json.loads(written)
    except ValueError:
        return written
    return json.dumps(spoil(held, chance, share * 3))[: chance.choice((None, None, -1, 20))]


def _bodies(seed: int) -> list[bytes]:
    chance = random.Random(seed)  # noqa: S311 - chance, and no secret
    return [json.dumps(spoil(json.loads(line), chance, chance.choice((0.002, 0.01, 0.05)))).encode() for line in LINES]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_spoilt_requests_cost_themselves_and_no_batch(seed: int, migrated_engine: sa.Engine) -> None:
    """All that can be read is landed, comes back equal, is ingested, and each trace has a result of its own."""
    spans = [span for body in _bodies(seed) for span in read_request(body, "json").spans]
    with migrated_engine.begin() as connection:
        landed = land_spans(connection, SOURCE.name, spans)
        entry = AnnotationEntry(SOURCE.name, "trace", spans[0].trace_id, ["x"], "trace", author="a test")
        add_annotations(connection, [entry])
    assert landed.new + landed.changed + landed.same == len(spans)
    with migrated_engine.connect() as connection:
        windows = [window_of(key, "daily") for key in landed_windows(connection, SOURCE.name, "daily")]
        stored = [each for w in windows for each in read_window_spans(connection, SOURCE.name, w)]
    assert len(stored) == len({span.trace_id for span in spans})
    waiting = 0
    for window in windows:
        ingest_window(migrated_engine, OtelSpansStore(migrated_engine, SOURCE.name), SOURCE, window)
        waiting += score_window(migrated_engine, SOURCE, evaluator_of(SOURCE), window, "a run").unsettled.occurrences
    with migrated_engine.connect() as connection:
        counted = "SELECT (SELECT count(*) FROM stepacc.traces), (SELECT count(*) FROM stepacc.current_scores)"
        assert tuple(connection.execute(sa.text(counted)).one()) == (len(stored), len(stored) - waiting)
    for trace_id, raw in stored:
        described = describe(trace_partition(canonicalise(trace_id, raw)))
        json.dumps(described, ensure_ascii=False, allow_nan=False).encode()
