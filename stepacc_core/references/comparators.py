"""What a reference can say of an argument (contract section 3).

Each comparator is an object with one keyword, such as `{"number": 25, "tolerance": 0.01}`; the classes are these
objects, and a plain value stands for itself.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, Field, Tag, WithJsonSchema

from stepacc_core.marks import holds_mark
from stepacc_core.references.equality import Canonical, canonical
from stepacc_core.references.model import MISSING, Verdict
from stepacc_core.references.text_comparators import Contains, Day, Instant, Regex, Text
from stepacc_core.references.verdicts import FAILS, REDACTED, quoted, told
from stepacc_core.references.written import (
    AS_WRITTEN,
    IdText,
    Number,
    Tolerance,
    Written,
    Yes,
    by_keyword,
    keys_of,
    tag,
)


@dataclass(frozen=True, slots=True)
class Plain(Written):
    """A plain value: equal by type. A plain null also holds where the argument was not given."""

    value: Any = field(hash=False)
    _form: Canonical = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Take the value apart once."""
        object.__setattr__(self, "_form", canonical(self.value))

    def written(self) -> Any:
        """Return the value."""
        return self.value

    def words(self) -> str:
        """Say it in words."""
        return "is null or not given" if self.value is None else f"is {quoted(self.value)}"

    def judge(self, value: Any) -> Verdict:
        """Compare; marks of redacted values are compared like any text."""
        given = None if value is MISSING and self.value is None else value
        return told(given is not MISSING and canonical(given) == self._form)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Equals(Written):
    """A plain value that looks like a comparator."""

    equals: Any = field(hash=False)
    _plain: Plain = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Take the value apart once."""
        object.__setattr__(self, "_plain", Plain(self.equals))

    def words(self) -> str:
        """Say it in words."""
        return self._plain.words()

    def judge(self, value: Any) -> Verdict:
        """Compare as a plain value."""
        return self._plain.judge(value)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Near(Written):
    """A number, given or nearly; text of a number is none. A redacted one is compared by its mark."""

    number: Number
    tolerance: Tolerance = 0

    def words(self) -> str:
        """Say it in words."""
        return f"is a number within {self.tolerance} of {self.number}" if self.tolerance else f"is {self.number}"

    def judge(self, value: Any) -> Verdict:
        """Compare; whether a redacted number is near to one that is not cannot be told."""
        if isinstance(self.number, str):
            return told(value == self.number)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return told(near(value, self.number, self.tolerance))
        return REDACTED if holds_mark(value) else FAILS


def near(value: float | str, number: float, tolerance: float) -> bool:
    """Tell whether a number is as near to another as wanted, by the decimals as written: 25.01 is within 0.01 of 25."""
    given = Decimal(str(value))
    try:
        return given.is_finite() and abs(given - Decimal(str(number))) <= Decimal(str(tolerance))
    except ArithmeticError:  # farther away than a decimal can tell
        return False


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class OneOf(Written):
    """Any of several plain values or comparators."""

    one_of: Annotated[tuple["AnyComparator", ...], Field(min_length=1)]

    def words(self) -> str:
        """Say it in words."""
        return " or ".join(option.words() for option in self.one_of)

    def judge(self, value: Any) -> Verdict:
        """Hold where one holds; where none does and one cannot be told, neither can this."""
        verdicts = [option.judge(value) for option in self.one_of]
        return next((v for v in verdicts if v.holds), next((v for v in verdicts if v.holds is None), FAILS))


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Anything(Written):
    """An argument that was given, whatever its value, null included."""

    any: Yes

    def words(self) -> str:
        """Say it in words."""
        return "is given (whatever its value)"

    def judge(self, value: Any) -> Verdict:
        """Ask whether it was given."""
        return told(value is not MISSING)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Absent(Written):
    """An argument that was not given."""

    absent: Yes

    def words(self) -> str:
        """Say it in words."""
        return "is not given"

    def judge(self, value: Any) -> Verdict:
        """Ask whether it was not given."""
        return told(value is MISSING)


@AS_WRITTEN
@dataclass(frozen=True, slots=True)
class Ident(Written):
    """An id: its text, blanks and case kept; an id that was given as a whole number is its digits."""

    id: IdText

    def words(self) -> str:
        """Say it in words."""
        return f"is the id {quoted(str(self.id))}"

    def judge(self, value: Any) -> Verdict:
        """Compare text with text; marks of redacted values are compared like any text."""
        return told(isinstance(value, str | int) and not isinstance(value, bool) and str(value) == str(self.id))


_KINDS = (Equals, Near, Day, Instant, Text, Contains, Regex, OneOf, Anything, Absent, Ident)
_KEYS = {keys_of(kind)[0]: keys_of(kind) for kind in _KINDS}
_SAID = (
    f"a comparator is an object with one of {', '.join(_KEYS)} (and `tolerance` beside `number`); write an object that "
    "is meant as it stands under `equals`"
)
_LITERAL = WithJsonSchema(
    {
        "title": "Plain value",
        "description": "A value that is equal by type.",
        "not": {"type": "object", "anyOf": [{"required": [keyword]} for keyword in _KEYS]},
    }
)

AnyComparator = Annotated[
    Annotated[Any, AfterValidator(Plain), _LITERAL, Tag("<plain>")]
    | Annotated[Equals, Tag(tag("equals"))]
    | Annotated[Near, Tag(tag("number"))]
    | Annotated[Day, Tag(tag("date"))]
    | Annotated[Instant, Tag(tag("datetime"))]
    | Annotated[Text, Tag(tag("text"))]
    | Annotated[Contains, Tag(tag("contains"))]
    | Annotated[Regex, Tag(tag("regex"))]
    | Annotated[OneOf, Tag(tag("one_of"))]
    | Annotated[Anything, Tag(tag("any"))]
    | Annotated[Absent, Tag(tag("absent"))]
    | Annotated[Ident, Tag(tag("id"))],
    *by_keyword(_KEYS, otherwise=lambda _: "<plain>", error=_SAID),
]
"""A comparator as it is written."""
