"""A time limit on the code of a metric, which may never come back by itself."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

_AGAIN = 1.0
"""Seconds after which code that went on all the same is interrupted once more."""


class _ExpiredError(BaseException):
    """The time is up; no `Exception`, which the code may catch and go on."""


class TimeLimit:
    """The time that some work may take, and, as a context manager, the parts of it that may be interrupted.

    Args:
        seconds: how long.
        error: makes the error that is raised when it took longer.
    """

    def __init__(self, seconds: float, error: Callable[[], Exception]) -> None:
        self._seconds = seconds
        self._error = error
        self._deadline: float | None = None
        self._interruptible = self._watched = False
        self._others = (0.0, 0.0)  # what was left on the timer, and its interval, when it was taken from somebody else

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Interrupt the block when the time is up, in a part that may be interrupted, and raise the error.

        Only the main thread can be interrupted: there Dagster's workers and the commands run their steps. Elsewhere,
        and on systems without such timers, the block takes the time it takes.
        """
        if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
            yield
            return
        handler = signal.signal(signal.SIGALRM, self._ring)
        self._watched = True
        try:
            yield
        except _ExpiredError:
            raise self._error() from None
        finally:
            self._watched = False
            if self._deadline is not None:
                signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
            if self._deadline is not None and self._others[0]:
                gone = time.monotonic() - (self._deadline - self._seconds)
                signal.setitimer(signal.ITIMER_REAL, max(self._others[0] - gone, 0.001), self._others[1])

    def begin(self) -> None:
        """Let the time begin."""
        self._deadline = time.monotonic() + self._seconds
        if self._watched:
            self._others = signal.setitimer(signal.ITIMER_REAL, self._seconds, _AGAIN)

    def check(self) -> None:
        """Raise the error if the time is up."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise self._error()

    def __enter__(self) -> None:
        """Enter a part that may be interrupted."""
        self._interruptible = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave it."""
        self._interruptible = False

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        if self._interruptible:
            raise _ExpiredError
