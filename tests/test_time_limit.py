"""A time limit interrupts code that does not come back, and leaves all else as it was."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType

import pytest

from stepacc_dagster.time_limit import TimeLimit

needs_timers = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no such timers")


class _TooLongError(Exception):
    """The error of these tests."""


@pytest.fixture
def timers() -> Iterator[None]:
    """Put back the timer that the test runner may have set."""
    handler, left = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    yield
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, *left)


def test_what_takes_less_than_its_time_is_let_be() -> None:
    limit = TimeLimit(60, _TooLongError)
    with limit.watched():
        limit.begin()
        for _ in range(3):
            with limit:
                done = True
            limit.check()
    assert done


@needs_timers
def test_code_that_catches_every_exception_is_interrupted_all_the_same() -> None:
    def work() -> None:
        with limit.watched():
            limit.begin()
            with limit:
                while True:
                    with suppress(Exception):  # as a metric of somebody's may do
                        time.sleep(60)

    limit = TimeLimit(0.05, _TooLongError)
    for end in (work, limit.check):
        with pytest.raises(_TooLongError):
            end()


@needs_timers
def test_code_that_goes_on_is_interrupted_again() -> None:
    interrupted: list[BaseException] = []

    def work() -> None:
        with limit.watched():
            limit.begin()
            with limit:
                try:
                    time.sleep(60)
                except BaseException as error:  # noqa: BLE001 (nothing else would be interrupted twice)
                    interrupted.append(error)
                time.sleep(60)

    limit = TimeLimit(0.01, _TooLongError)
    with pytest.raises(_TooLongError):
        work()
    assert len(interrupted) == 1


@needs_timers
def test_what_may_not_be_interrupted_is_not_and_the_next_part_that_may_is() -> None:
    done: list[str] = []

    def work() -> None:
        with limit.watched():
            limit.begin()
            time.sleep(0.05)
            done.append("a part that may not")
            with limit:
                time.sleep(60)

    limit = TimeLimit(0.01, _TooLongError)
    with pytest.raises(_TooLongError):
        work()
    assert len(done) == 1


@needs_timers
@pytest.mark.usefixtures("timers")
@pytest.mark.parametrize("begins", [True, False])
def test_who_else_waits_for_the_signal_gets_it(begins: bool) -> None:  # noqa: FBT001 (a case)
    rung: list[int] = []

    def ring(number: int, _frame: FrameType | None) -> None:
        rung.append(number)

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    limit = TimeLimit(60, _TooLongError)
    with limit.watched():
        if begins:
            limit.begin()
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 1
    assert signal.getsignal(signal.SIGALRM) is ring
    while not rung:
        time.sleep(0.01)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_in_another_thread_the_work_is_judged_when_it_is_done() -> None:
    errors: list[BaseException] = []

    def work() -> None:
        limit = TimeLimit(0.01, _TooLongError)
        with limit.watched():
            limit.begin()
            with limit:
                time.sleep(0.05)
        try:
            limit.check()
        except _TooLongError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(errors) == 1
