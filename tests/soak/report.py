"""How a soak goes, and what is told of it."""

from dataclasses import dataclass, field

_PAUSE = 15.0
"""Seconds between two disturbances, where the machine is quick and there is time."""
_QUICK = 10.0
"""Seconds in which the command starts on a machine that has nothing else to do."""
_REST = 900.0
"""Seconds within which all comes to rest on a machine that is quick."""


def _slowness(started_in: float) -> float:
    """Return how many times slower than a quick one a machine is, 1 to 4, by how long the command took to start."""
    return min(4.0, max(1.0, started_in / _QUICK))


@dataclass(frozen=True)
class Settings:
    """How a soak goes.

    Attributes:
        seconds: how long it is disturbed.
        seed: what everything follows from that is left to chance.
    """

    seconds: float = 600
    seed: int = 1

    @property
    def is_short(self) -> bool:
        """Whether there is time for one version change only."""
        return self.seconds < 180

    def pause(self, started_in: float) -> tuple[float, float]:
        """Return the least and most seconds between two disturbances, where the command took some seconds to start.

        On a slow machine they come more rarely, or no run would ever come to its end before the last of them.
        """
        mean = min(_PAUSE * _slowness(started_in), self.seconds / 7.5)  # six kinds have to fit in
        return 0.8 * mean, 1.2 * mean

    def settles_within(self, started_in: float) -> float:
        """Return after how many seconds what has not come to rest hangs, where the command took so long to start."""
        return _REST * _slowness(started_in)

    @property
    def bumps(self) -> list[float]:
        """When the metric's version changes, as shares of the time; in a long soak it also goes back once."""
        return [0.5] if self.is_short else [0.3, 0.5, 0.75]


@dataclass
class Report:
    """What came of a soak; nothing went wrong where `problems` is empty.

    Attributes:
        settings: how it went.
        journal: what was done, and when.
        figures: what was counted, by name.
        differing: rows that are not those of an undisturbed run.
        hanging: what has not come to rest, was left over, or ended as it should not.
        untried: what was to happen and did not, so that the rest tells little.
    """

    settings: Settings
    journal: list[str] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)
    hanging: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """All that is not as it should be."""
        return self.differing + self.hanging + self.untried

    def __str__(self) -> str:
        """Return what came of it, and where something went wrong all that was done."""
        lines = [f"{self.settings}", *(f"{name}: {value}" for name, value in self.figures.items())]
        return "\n".join([*lines, self.told(), "What is wrong:", *self.problems] if self.problems else lines)

    def told(self) -> str:
        """Return what was done, and when."""
        return "\n".join([f"What was done with seed {self.settings.seed}, and when (s):", *self.journal])
