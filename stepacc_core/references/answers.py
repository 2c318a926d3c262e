"""Checking the final answer (contract section 5).

Each check is an object with one key, such as `{"contains": "refunded"}`; the classes are these objects.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import AfterValidator, Field, Tag

from stepacc_core.marks import holds_mark
from stepacc_core.references.comparators import Plain, near
from stepacc_core.references.equality import same
from stepacc_core.references.hooks import ask, check_place
from stepacc_core.references.model import AnswerCheck, AnswerResult, Asked, ReferenceTrajectory
from stepacc_core.references.patterns import check_pattern, found_in
from stepacc_core.references.verdicts import quoted
from stepacc_core.references.written import AS_WRITTEN, Number, Tolerance, Written, by_keyword, keys_of, tag
from stepacc_core.shown import shown

_NUMBER = re.compile(
    r"(?<![\w.,])(?<!\w[-+])"
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?",
    re.ASCII,
)
"""A number in a text that no word ends with: `-25`, `1,250.00` and `25USD`, but not `A17` or `A-17`."""
_HIDDEN = AnswerResult(None, "redacted")


def check_answer(
    check: AnswerCheck, answer: Any, *, task: str | None, reference: ReferenceTrajectory | None
) -> AnswerResult:
    """Check a final answer.

    Args:
        check: what the task says of it.
        answer: text, or the JSON value that was recorded; None where none was, of which nothing can be told.
        task: the task's id, for a user's own function.
        reference: the chosen reference, for a user's own function.
    """
    if answer is None:
        return AnswerResult(None, "not_recorded")
    return check.judge(answer, Asked(task, reference))


def _document(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        msg = f"{shown(value)} is no JSON document ({error}); write one, or a value as it stands"
        raise ValueError(msg) from None


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class AnswerEquals(Written):
    """The answer is this very text, or this value by type; marks of redacted values are compared like any text."""

    equals: Any = field(hash=False)

    def words(self) -> str:
        """Say it in words."""
        return Plain(self.equals).words()

    def judge(self, answer: Any, asked: Asked) -> AnswerResult:  # noqa: ARG002 (as all checks)
        """Compare."""
        return AnswerResult(same(answer, self.equals))


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class AnswerContains(Written):
    """The answer's text contains a text; that of a structured answer is its JSON."""

    contains: Annotated[str, Field(min_length=1)]

    def words(self) -> str:
        """Say it in words."""
        return f"contains {quoted(self.contains)}"

    def judge(self, answer: Any, asked: Asked) -> AnswerResult:  # noqa: ARG002 (as all checks)
        """Look into the text."""
        return _HIDDEN if holds_mark(answer) else AnswerResult(self.contains in _text(answer))


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class AnswerRegex(Written):
    """A pattern is found in the answer's text; that of a structured answer is its JSON."""

    regex: Annotated[str, AfterValidator(check_pattern)]

    def words(self) -> str:
        """Say it in words."""
        return f"matches the pattern {self.regex}"

    def judge(self, answer: Any, asked: Asked) -> AnswerResult:  # noqa: ARG002 (as all checks)
        """Search in the text."""
        if holds_mark(answer):
            return _HIDDEN
        found = found_in(self.regex, _text(answer))
        return AnswerResult(found, "too_slow" if found is None else None)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class AnswerNumber(Written):
    """The answer is a number that is given or near, or its text has such a number in it."""

    number: Number
    tolerance: Tolerance = 0

    def words(self) -> str:
        """Say it in words."""
        return f"gives the number {self.number}" + (
            f" (or one within {self.tolerance} of it)" if self.tolerance else ""
        )

    def judge(self, answer: Any, asked: Asked) -> AnswerResult:  # noqa: ARG002 (as all checks)
        """Compare, or look for it in the text."""
        if isinstance(self.number, str):
            return AnswerResult(answer == self.number)
        if isinstance(answer, int | float) and not isinstance(answer, bool):
            return AnswerResult(near(answer, self.number, self.tolerance))
        if holds_mark(answer):
            return _HIDDEN
        numbers = [found.replace(",", "") for found in _NUMBER.findall(answer)] if isinstance(answer, str) else []
        return AnswerResult(any(near(number, self.number, self.tolerance) for number in numbers))


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class AnswerJson(Written):
    """The answer is the same JSON document, as text or as a value."""

    json: Annotated[Any, AfterValidator(_document)] = field(hash=False)

    def words(self) -> str:
        """Say it in words."""
        return f"is the JSON document {quoted(self.json)}"

    def judge(self, answer: Any, asked: Asked) -> AnswerResult:  # noqa: ARG002 (as all checks)
        """Compare documents; text that is no JSON is none."""
        if isinstance(answer, str):
            try:
                answer = json.loads(answer)
            except (ValueError, RecursionError):
                return _HIDDEN if holds_mark(answer) else AnswerResult(holds=False)
        return AnswerResult(same(answer, self.json))


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class AnswerHook(Written):
    """A user's own function says whether the answer is right."""

    callable: Annotated[str, AfterValidator(check_place)]

    def words(self) -> str:
        """Say it in words."""
        return f"is right by the judgement of {self.callable}"

    def judge(self, answer: Any, asked: Asked) -> AnswerResult:
        """Ask the function."""
        return ask(self.callable, answer, asked)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class AnyOf(Written):
    """One of several checks holds."""

    any_of: Annotated[tuple["AnyAnswerCheck", ...], Field(min_length=1)]

    def words(self) -> str:
        """Say it in words."""
        return " or ".join(_part(check) for check in self.any_of)

    def judge(self, answer: Any, asked: Asked) -> AnswerResult:
        """Check until one holds."""
        return _first(True, (check.judge(answer, asked) for check in self.any_of))  # noqa: FBT003 (what decides)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class AllOf(Written):
    """Several checks all hold."""

    all_of: Annotated[tuple["AnyAnswerCheck", ...], Field(min_length=1)]

    def words(self) -> str:
        """Say it in words."""
        return " and ".join(_part(check) for check in self.all_of)

    def judge(self, answer: Any, asked: Asked) -> AnswerResult:
        """Check until one fails."""
        return _first(False, (check.judge(answer, asked) for check in self.all_of))  # noqa: FBT003 (what decides)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Not(Written):
    """A check does not hold."""

    not_: Annotated["AnyAnswerCheck", Field(alias="not")]

    def words(self) -> str:
        """Say it in words."""
        return f"is not one that {_part(self.not_)}"

    def judge(self, answer: Any, asked: Asked) -> AnswerResult:
        """Turn the check's result over, and the number of a judge with it; what cannot be told cannot be told."""
        found = self.not_.judge(answer, asked)
        if found.holds is None:
            return found
        return replace(found, holds=not found.holds, score=None if found.score is None else 1 - found.score)


_KINDS = (AnswerEquals, AnswerContains, AnswerRegex, AnswerNumber, AnswerJson, AnyOf, AllOf, Not, AnswerHook)
_KEYS = {keys_of(kind)[0]: keys_of(kind) for kind in _KINDS}
_SAID = f"a check of the answer is an object with one of {', '.join(_KEYS)} (and `tolerance` beside `number`)"

AnyAnswerCheck = Annotated[
    Annotated[AnswerEquals, Tag(tag("equals"))]
    | Annotated[AnswerContains, Tag(tag("contains"))]
    | Annotated[AnswerRegex, Tag(tag("regex"))]
    | Annotated[AnswerNumber, Tag(tag("number"))]
    | Annotated[AnswerJson, Tag(tag("json"))]
    | Annotated[AnyOf, Tag(tag("any_of"))]
    | Annotated[AllOf, Tag(tag("all_of"))]
    | Annotated[Not, Tag(tag("not"))]
    | Annotated[AnswerHook, Tag(tag("callable"))],
    *by_keyword(_KEYS, otherwise=lambda _: None, error=_SAID),
]
"""A check of the final answer as it is written."""


def _first(decisive: bool, results: Iterable[AnswerResult]) -> AnswerResult:  # noqa: FBT001 (the outcome that decides)
    """Return the first result that decides; else that a function failed, else that one cannot be told, else neither."""
    untold: list[AnswerResult] = []
    for result in results:
        if result.holds is decisive:
            return AnswerResult(decisive)
        if result.holds is None:
            untold.append(result)
    return min(untold, key=lambda result: result.error is None, default=AnswerResult(not decisive))


def _part(check: AnyAnswerCheck) -> str:
    return f"({check.words()})" if isinstance(check, AnyOf | AllOf) else check.words()


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False, default=str)
