"""Text of exported CSV: nothing in it is a formula, and every text can be had back."""

import csv
import io
import json
import math

from hypothesis import given
from hypothesis import strategies as st

from stepacc_dagster.export.columns import Column
from stepacc_dagster.export.text_formats import guarded, write_csv, write_json_lines

STORED = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
"""Text that Postgres can hold."""
STARTS = st.sampled_from(["", "=", "+", "-", "@", "＝", "'", "''", " =", "\t", "\r", "\n", "\u3000-"])  # noqa: RUF001
TEXT = st.builds(str.__add__, STARTS, STORED)
COLUMNS = (Column("text", "text", "", ""), Column("number", "number", "", ""), Column("at", "moment", "", ""))
ROWS = st.lists(st.tuples(TEXT, st.none() | st.floats(), st.none() | st.integers(-(10**15), 10**16)))


@given(TEXT)
def test_no_text_begins_a_formula_and_one_apostrophe_less_is_the_text(value: str) -> None:
    cell = guarded(value)
    assert cell.strip()[:1] not in {*"=+-@＝＋－＠"} or not cell.strip()  # noqa: RUF001
    assert cell[:1] not in {"\t", "\r", "\n"} or not cell
    assert cell.removeprefix("'") == value


@given(ROWS)
def test_csv_and_json_lines_hold_the_same(rows: list[tuple[str, float | None, int | None]]) -> None:
    table, lines = io.BytesIO(), io.BytesIO()
    write_csv(table, COLUMNS, rows)
    write_json_lines(lines, COLUMNS, rows)

    cells = list(csv.DictReader(io.StringIO(table.getvalue().decode(), newline="")))
    objects = [json.loads(line) for line in lines.getvalue().decode().split("\n")[:-1]]
    assert len(cells) == len(objects) == len(rows)
    for cell, found, (text, number, _) in zip(cells, objects, rows, strict=True):
        assert (cell["text"].removeprefix("'"), found["text"]) == (text, text)
        assert cell["at"] == (found["at"] or "")
        for written in (cell["number"] or None, found["number"]):
            read = None if written is None else float(written)
            same = read == number
            assert same or (number is not None and math.isnan(number) and math.isnan(read or 0.0))
