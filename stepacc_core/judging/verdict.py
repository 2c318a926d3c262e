"""The label of a run, which is never a number: pass, fail, or for a person to review (contract, section 2)."""

from typing import Literal

from stepacc_core.references import AnswerResult

VerdictLabel = Literal["pass", "fail", "review"]


def verdict(*, path: bool, forbidden: bool, answer: AnswerResult | None, crashed: bool = False) -> VerdictLabel:
    """Return the label of a run.

    Args:
        path: the task's match mode holds for a reference.
        forbidden: something forbidden ran.
        answer: what the check of the answer found, None where the task has none.
        crashed: the run ended with an error.

    Returns:
        `fail` where something forbidden ran, the answer is wrong, or the path is and nobody says what the answer should
        be. `pass` where path and answer are right, or the path and nothing is said of the answer of a run that ended
        well. Else `review`: the answer is right and the path matches no reference, perhaps one worth adding; it cannot
        be told whether the answer is right; or a run crashed before it did anything wrong, which proves nothing.
    """
    if forbidden or (answer is not None and answer.holds is False):
        return "fail"
    if answer is None:
        return ("review" if crashed else "pass") if path else "fail"
    return "pass" if path and answer.holds else "review"
