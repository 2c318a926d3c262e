"""From what people write under `reference_trajectories` to references."""

from typing import Any

from stepacc_core.errors import FailureCode, ScoringError
from stepacc_core.references.model import TaskReferences


def parse_references(value: Any) -> TaskReferences:
    """Turn what an author wrote into the references of a task.

    Args:
        value: the mapping of contract section 1, JSON text of it, a list of names and lists of names as in
            `expected_steps` (one reference without arguments), or a list of references.

    Raises:
        ScoringError: `invalid_references`, in a sentence that names reference and key.
    """
    msg = f"References {value!r} cannot be read."
    raise ScoringError(FailureCode.INVALID_REFERENCES, msg)
