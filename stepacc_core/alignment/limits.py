"""How much work one alignment may take before it is refused."""

from stepacc_core.errors import FailureCode, ScoringError

MAX_CELLS = 200_000_000
"""Expected times observed steps up to which sequences are compared; their rows then take some 75 MB."""

MAX_STEPS = 1_000_000
"""Expected or observed steps up to which their entries are written; those then take some 300 MB."""

MAX_WORK = 10_000_000
"""Places that may be looked at one by one, each for about a microsecond; whole rows of plain steps are not counted."""


def check_size(expected: int, observed: int) -> None:
    """Refuse sequences whose rows or entries would take too much memory.

    Raises:
        ScoringError: `too_large`.
    """
    if max(expected, observed) > MAX_STEPS:
        msg = (
            f"{expected} expected against {observed} observed steps are more than {MAX_STEPS} on one side; "
            "score fewer steps at once, or a shorter trajectory."
        )
        raise ScoringError(FailureCode.TOO_LARGE, msg)
    if expected * observed > MAX_CELLS:
        msg = (
            f"{expected} expected against {observed} observed steps are beyond {MAX_CELLS} pairs; "
            "score fewer steps at once, or a shorter trajectory."
        )
        raise ScoringError(FailureCode.TOO_LARGE, msg)


class Budget:
    """What is left of `MAX_WORK` for one alignment."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_WORK

    def spend(self, places: int) -> None:
        """Count places about to be looked at.

        Raises:
            ScoringError: `too_large`.
        """
        self._left -= places
        if self._left < 0:
            msg = (
                "The expected and observed steps are so long and so unlike that more than "
                f"{MAX_WORK} places would have to be looked at one by one; score fewer steps at once, "
                "or a trajectory closer to what was observed."
            )
            raise ScoringError(FailureCode.TOO_LARGE, msg)
