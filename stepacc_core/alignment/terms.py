"""What a reference asks of its steps beyond their names, as the engine takes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stepacc_core.alignment.relation import Mask

Held = Callable[[int], int]
"""How many checks of a plain step hold on an observed step that satisfies it."""


@dataclass(frozen=True, slots=True)
class GroupTerms:
    """A group that has optional members or checks.

    Attributes:
        members: the masks of all members, in authored order.
        optional: whether each may be absent.
        held: how many checks of a member hold on an observed step that satisfies it; None where no member has any.
        most: the most checks that any step of the reference has; a match on which `n` hold misses `most - n`.
    """

    members: tuple[Mask, ...]
    optional: tuple[bool, ...]
    held: Callable[[int, int], int] | None
    most: int


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a reference, by the indices of its elements; without arguments it is one of names alone.

    Attributes:
        optional: the plain steps that may be absent.
        groups: the groups that have optional members or checks.
        held: for each plain step with checks, how many hold.
        most: the most checks that any step has.
        required: how many steps are required, members of groups one by one; 0 where all are.
    """

    optional: frozenset[int] = frozenset()
    groups: Mapping[int, GroupTerms] = field(default_factory=dict)
    held: Mapping[int, Held] = field(default_factory=dict)
    most: int = 0
    required: int = 0

    @property
    def names_only(self) -> bool:
        """Tell whether nothing is asked beyond names."""
        return not (self.optional or self.groups or self.most)


NAMES_ONLY = Terms()
