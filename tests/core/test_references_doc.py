"""Every example of docs/references.md is true."""

import dataclasses
import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from stepacc_core.annotation_files import parse_annotations
from stepacc_core.annotation_words import explain
from stepacc_core.errors import AnnotationError
from stepacc_core.references import ReferenceStep, check_answer, check_arguments, parse_references
from stepacc_core.references.answers import AnyAnswerCheck
from stepacc_core.references.comparators import AnyComparator
from stepacc_core.references.document import AgentStep, BudgetLimits, Reference, References
from stepacc_core.references.written import keys_of

DOC = (Path(__file__).parents[2] / "docs" / "references.md").read_text(encoding="utf-8")
ARGUMENTS, _, ANSWERS = DOC.partition("## The final answer")
NOT_GIVEN = object()
SPAN = re.compile(r"`([^`]+)`|\*not given\*")


def rows(text: str) -> Iterator[tuple[Any, bool, Any]]:
    """The examples of a table: what is written, whether it holds, and for which value."""
    for line in text.splitlines():
        match [cell.strip() for cell in line.split("|")]:
            case ["", written, holds, fails, _, ""] if written.startswith("`"):
                for cell, expected in ((holds, True), (fails, False)):
                    for found in SPAN.finditer(cell):
                        yield yaml.safe_load(written.strip("`")), expected, _value(found[1])


def _value(written: str | None) -> Any:
    """A value as YAML has it in an annotations file, where dates are text."""
    if written is None:
        return NOT_GIVEN
    found = yaml.safe_load(written)
    return written if isinstance(found, dt.date) or written.startswith("2026") else found


ARGUMENT_ROWS = list(rows(ARGUMENTS))
ANSWER_ROWS = list(rows(ANSWERS))


def blocks(language: str) -> list[str]:
    """The code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", DOC, re.DOTALL | re.MULTILINE)


def _named(value: object) -> str:
    """Name a cell; the same in every process."""
    return "not given" if value is NOT_GIVEN else str(value)


@pytest.mark.parametrize(("written", "holds", "value"), ARGUMENT_ROWS, ids=_named)
def test_example_of_a_comparator(written: Any, holds: bool, value: Any) -> None:  # noqa: FBT001 (a column of the table)
    [step] = parse_references([{"tool": "t", "args": {"x": written}}]).references[0].elements
    assert isinstance(step, ReferenceStep)

    [check] = check_arguments(step, {} if value is NOT_GIVEN else {"x": value})

    assert check.holds is holds


@pytest.mark.parametrize(("written", "holds", "value"), ANSWER_ROWS, ids=_named)
def test_example_of_a_check_of_the_answer(written: Any, holds: bool, value: Any) -> None:  # noqa: FBT001 (as above)
    check = parse_references({"references": [["a"]], "final_answer": written}).final_answer
    assert check is not None

    assert check_answer(check, value, task=None, reference=None).holds is holds


def _keywords(union: Any) -> set[str]:
    """The keyword of each object in a union; what stands for itself has none."""
    kinds = [get_args(kind)[0] for kind in get_args(get_args(union)[0])]
    return {keys_of(kind)[0] for kind in kinds if isinstance(kind, type) and dataclasses.is_dataclass(kind)}


def test_every_comparator_check_and_key_is_in_the_doc() -> None:
    shown = {key for written, _, _ in ARGUMENT_ROWS if isinstance(written, dict) for key in written}
    assert _keywords(AnyComparator) - shown == set()
    answered = {key for written, _, _ in ANSWER_ROWS for key in written}
    assert _keywords(AnyAnswerCheck) - answered == {"callable"}
    keys = {*References.model_fields, *Reference.model_fields, *BudgetLimits.model_fields, *AgentStep.model_fields}
    assert [
        key for key in sorted(keys) if f"`{key}" not in DOC and f".{key}`" not in DOC and f"{{{key}:" not in DOC
    ] == []


def test_the_files_are_taken_and_the_words_are_those_of_the_command() -> None:
    files = [block for block in blocks("yaml") if "annotations:" in block]
    assert len(files) == 2
    said = [
        line
        for annotation in parse_annotations(files[0], "yaml", name="refund.yaml")
        for line in ("", f"{annotation.target}, {annotation.key}:", *(f"  {line}" for line in explain(annotation)))
    ]
    assert "\n".join(said) in DOC
    assert len(parse_annotations(files[1], "yaml", name="f")) == 3


def test_the_refusal_is_the_one_that_is_said() -> None:
    [file, *_] = blocks("yaml")
    with pytest.raises(AnnotationError) as caught:
        parse_annotations(file.replace("date: 2026-01-02", "date: 2.1.2026"), "yaml", name="refund.yaml")
    assert str(caught.value) in DOC


def test_the_function_of_ones_own_is_one_that_can_be_asked() -> None:
    [code] = blocks("python")
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (the doc's own example)
    assert names["polite"](task="t", answer="Please wait.", reference=None) is True
