"""A user's own judge of final answers: `callable: package.module:function`."""

import importlib
import re
from typing import Any

from stepacc_core.references.model import AnswerResult, Asked
from stepacc_core.shown import shown

_PLACE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_ENOUGH = 0.5
"""From which number on an answer is taken as right."""


def check_place(place: str) -> str:
    """Return a place as `package.module:function` writes it; it is looked up when an answer is checked.

    Raises:
        ValueError: it is written otherwise.
    """
    if not _PLACE.fullmatch(place):
        msg = f"{place!r} names no function; write package.module:function"
        raise ValueError(msg)
    return place


def ask(place: str, answer: Any, asked: Asked) -> AnswerResult:
    """Ask a user's function, which is called with the keywords `task`, `answer` and `reference`.

    Returns:
        Right or wrong for a bool; for a number from 0 to 1, right from 0.5 on, with the number as `score`. Whatever
        goes wrong in the function, or anything else that it returns, is a result with an `error`.
    """
    try:
        found = _function(place)(task=asked.task, answer=answer, reference=asked.reference)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a user's code may raise anything, or end as a program does)
        return _failed(f"The function `{place}` failed ({type(error).__name__}: {error}); mend it, and score again.")
    if isinstance(found, bool):
        return AnswerResult(found)
    if isinstance(found, int | float) and 0 <= found <= 1:
        return AnswerResult(found >= _ENOUGH, score=float(found))
    return _failed(f"The function `{place}` returned {shown(found)}; return a bool, or a number from 0 to 1.")


def _function(place: str) -> Any:
    module, _, path = place.partition(":")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    return found


def _failed(sentence: str) -> AnswerResult:
    return AnswerResult(None, "hook_failed", error=sentence)
