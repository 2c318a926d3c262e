"""Aligning expected with observed steps.

`align` finds a least edit distance, groups included, and `align_by_position` holds position against position: both
return the entries of the metadata (contract of `agent.step_accuracy`, sections 5 and 6). `align_reference` finds a
least edit distance where steps may be optional and have argument checks, and speaks in indices.
"""

from stepacc_core.alignment.edit import Alignment, align
from stepacc_core.alignment.limits import MAX_CELLS, MAX_STEPS, MAX_WORK
from stepacc_core.alignment.position import PositionAlignment, align_by_position
from stepacc_core.alignment.reference import (
    Agreement,
    Operation,
    ReferenceAlignment,
    ReferenceElement,
    ReferenceStep,
    align_reference,
)

__all__ = [
    "MAX_CELLS",
    "MAX_STEPS",
    "MAX_WORK",
    "Agreement",
    "Alignment",
    "Operation",
    "PositionAlignment",
    "ReferenceAlignment",
    "ReferenceElement",
    "ReferenceStep",
    "align",
    "align_by_position",
    "align_reference",
]
