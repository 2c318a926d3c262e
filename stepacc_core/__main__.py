"""`python -m stepacc_core`: the worked example of the metric, as a picture."""

import sys

from stepacc_core import Step, step_accuracy
from stepacc_core.picture import picture


def worked_example() -> str:
    """Score the contract's worked example, one stray step at the front, and draw it."""
    observed = [Step("preamble_call"), Step("search"), Step("open_document")]
    result = step_accuracy(["search", "open_document"], observed)
    return f"{picture(result.metadata)}\nscore {result.score:.3f}"


if __name__ == "__main__":
    sys.stdout.write(worked_example() + "\n")
