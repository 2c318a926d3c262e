"""Delivering scores in batches: one that is refused never costs the others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from stepacc_dagster.errors import RefusedScoreError, WriteBackError
from stepacc_dagster.storage.write_backs import DueScore
from stepacc_dagster.writeback.destinations import Destination

_FAULTS = 5
"""Scores in a row that a server answers with a fault of its own, after which it is taken to be out of order."""
_SERVER_FAULT = 500


@dataclass(slots=True)
class Delivered:
    """What became of some scores.

    Attributes:
        written: those that the server has.
        refused: those that it does not take, with its answer.
        remarks: what else it said.
        stopped: why the rest was not sent, where it was not.
        faults: how many scores in a row, up to the last, met a fault of the server.
    """

    written: list[DueScore] = field(default_factory=list)
    refused: list[tuple[DueScore, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    stopped: WriteBackError | None = None
    faults: int = 0


def deliver(destination: Destination, scores: Sequence[DueScore]) -> Delivered:
    """Write scores, in batches as the destination takes them.

    A batch that is refused is halved until the score that is to blame is alone. When the server cannot be used any
    more, what was written until then is returned, and the error with it.
    """
    delivered = Delivered()
    try:
        for batch in _batches(scores, destination.batch_size):
            _write(destination, batch, delivered)
    except WriteBackError as error:
        delivered.stopped = error
    return delivered


def _batches(scores: Sequence[DueScore], size: int) -> Iterator[Sequence[DueScore]]:
    for start in range(0, len(scores), size):
        yield scores[start : start + size]


def _write(destination: Destination, batch: Sequence[DueScore], delivered: Delivered) -> None:
    try:
        delivered.remarks += destination.write(batch)
    except RefusedScoreError as error:
        if len(batch) > 1:
            middle = len(batch) // 2
            _write(destination, batch[:middle], delivered)
            _write(destination, batch[middle:], delivered)
            return
        delivered.refused.append((batch[0], str(error)))
        delivered.faults = delivered.faults + 1 if error.status >= _SERVER_FAULT else 0
        if delivered.faults == _FAULTS:
            msg = f"The server fails with {_FAULTS} scores in a row, the last time with {error}; look at its log."
            raise WriteBackError(msg, transient=True) from None
    else:
        delivered.written += batch
        delivered.faults = 0
