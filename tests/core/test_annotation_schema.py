"""The JSON Schema for editors agrees with what an import takes and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from stepacc_core.annotation_files import parse_annotations
from stepacc_core.annotation_schema import annotation_schema
from stepacc_core.errors import AnnotationError

CASES = Path(__file__).parents[1] / "cases"
REFUSED = json.loads((CASES / "refused_references.json").read_text(encoding="utf-8"))
COMPARATORS = json.loads((CASES / "comparators.json").read_text(encoding="utf-8"))
ANSWERS = json.loads((CASES / "answers.json").read_text(encoding="utf-8"))
WORDS = parse_annotations((CASES / "annotation_words.yaml").read_text(encoding="utf-8"), "yaml", name="f")
SCHEMA = Draft202012Validator(annotation_schema())
TARGET = {"type": "task", "id": "t"}


def by_hand(written: Any) -> bool:
    """Whether a person writes it; the mark of a redacted number is left there by the redactor."""
    return '"number": "[' not in json.dumps(written)


def document(**entry: Any) -> dict[str, Any]:
    """A file of one entry."""
    return {"annotations": [{"target": TARGET, **entry}]}


def taken(written: dict[str, Any]) -> bool:
    """Whether an import takes a file."""
    try:
        parse_annotations(json.dumps(written), "json", name="f")
    except AnnotationError:
        return False
    return True


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(annotation_schema())


GOOD = [
    *(document(**{annotation.key: annotation.value}) for annotation in WORDS),
    *(
        document(reference_trajectories=[{"tool": "t", "args": {"x": case["written"]}}])
        for case in COMPARATORS
        if by_hand(case)
    ),
    *(
        document(reference_trajectories={"references": [["a"]], "final_answer": case["check"], "forbidden": ["b"]})
        for case in ANSWERS
        if by_hand(case)
    ),
    document(reference_trajectories=[{"steps": ["a"]}, ["b", ["c"]]]),
    {"$schema": "annotations.schema.json", "source": "s", **document(expected_steps=["a"])},
]


@pytest.mark.parametrize("written", GOOD, ids=lambda written: json.dumps(written["annotations"])[-60:])
def test_what_an_import_takes_is_valid(written: dict[str, Any]) -> None:
    assert taken(written)
    assert [error.message for error in SCHEMA.iter_errors(written)] == []
    assert SCHEMA.is_valid(written["annotations"])


BAD = [
    *(document(reference_trajectories=case["written"]) for case in REFUSED if not case.get("beyond_schema")),
    document(),
    document(expected_steps=[]),
    document(expected_steps=["a", [["b"]]]),
    document(expected_steps=["a"], key="b"),
    {"annotations": []},
    {"entries": []},
    {"annotations": [{"target": {"type": "span", "id": "t"}, "expected_steps": ["a"]}]},
]


@pytest.mark.parametrize("written", BAD, ids=lambda written: json.dumps(written)[-60:])
def test_what_an_import_refuses_for_its_shape_is_invalid(written: dict[str, Any]) -> None:
    assert not taken(written)
    assert not SCHEMA.is_valid(written)
