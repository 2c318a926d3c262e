"""What an examination finds, and what to do about it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

Level = Literal["ok", "note", "warning", "error"]

LEVELS: tuple[Level, ...] = get_args(Level)
"""From the least to the worst.

- ok: as it should be.
- note: worth knowing; it may well be meant so.
- warning: something is not done, or not done by itself, that most people expect.
- error: something fails, or will fail when it is used.
"""

_PASSWORD = re.compile(r"(?P<before>://[^\s:/@]*:)(?!password@)\S*(?=@)|(?P<name>\bpassword=)\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        level: how bad it is.
        what: what was found, in a sentence.
        what_to_do: what to do about it, in a sentence; only what is as it should be needs none.

    Raises:
        ValueError: there is something to do and nobody says what.
    """

    level: Level
    what: str
    what_to_do: str | None = None

    def __post_init__(self) -> None:
        """Refuse a complaint without a remedy, and leave out what no finding may show."""
        if self.level != "ok" and not self.what_to_do:
            msg = f"A finding of level {self.level} says what to do; this one does not: {self.what}"
            raise ValueError(msg)
        object.__setattr__(self, "what", _without_passwords(self.what))
        if self.what_to_do is not None:
            object.__setattr__(self, "what_to_do", _without_passwords(self.what_to_do))


@dataclass(frozen=True, slots=True)
class Section:
    """The findings about one thing: the installation, a database, a Dagster instance, a source."""

    about: str
    findings: tuple[Finding, ...]


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level among findings; ok where there are none."""
    return max((finding.level for finding in findings), key=LEVELS.index, default="ok")


def _without_passwords(text: str) -> str:
    # What others say of an error may quote a URL; ours name host and database only.
    return _PASSWORD.sub(lambda found: f"{found['before'] or found['name']}***", text)


def of_metrics(found: Mapping[str, Sequence[Finding]]) -> Iterator[Finding]:
    """Yield what was found by metric: what holds for all of them once, all else with the name of its metric."""
    told: list[Finding] = []
    for name, findings in found.items():
        for finding in findings:
            if all(finding in others for others in found.values()):
                if finding not in told:
                    told.append(finding)
                    yield finding
            elif finding.what.startswith(name):
                yield finding
            else:
                yield replace(finding, what=f"{name}: {finding.what}")
