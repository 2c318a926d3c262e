"""Interrupts that arrive while Dagster runs in this process."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts_kept() -> Iterator[None]:
    """Let no interrupt be lost in the block, and put the handlers back that were there before it.

    Dagster sets handlers of its own. Before and after a run's steps they only take note, which nobody reads; in a step
    they make a failure of the interrupt, after which the next run would begin. And where SIGINT was ignored, as in the
    background of a shell, they leave SIGTERM ignored too.

    Raises:
        KeyboardInterrupt: SIGINT or SIGTERM came within the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in _NUMBERS}
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    came = b""
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        with suppress(BlockingIOError):
            came = os.read(reader, 1_024)
        os.close(reader)
        os.close(writer)
    if any(number in came for number in _NUMBERS):
        raise KeyboardInterrupt
