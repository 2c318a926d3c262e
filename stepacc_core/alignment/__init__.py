"""Aligning expected with observed steps.

Two ways, both returning the entries of the metadata (contract of `agent.step_accuracy`, sections 5 and 6):
`align` finds a least edit distance, groups included; `align_by_position` holds position against position.
"""

from stepacc_core.alignment.edit import Alignment, align
from stepacc_core.alignment.limits import MAX_CELLS, MAX_WORK
from stepacc_core.alignment.position import PositionAlignment, align_by_position

__all__ = ["MAX_CELLS", "MAX_WORK", "Alignment", "PositionAlignment", "align", "align_by_position"]
