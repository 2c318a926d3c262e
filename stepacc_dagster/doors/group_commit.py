"""Landing the requests of many clients in few transactions, and telling each when its own is committed."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from stepacc_core.errors import StepaccError
from stepacc_core.redaction import Redactor
from stepacc_dagster.doors.otlp_http import Encoding, Read, Signal, read_request
from stepacc_dagster.storage.raw_spans import Landed, land_spans

_BATCH_BYTES = 8 * 1024 * 1024
"""Bytes of requests after which a transaction takes no further one."""
_WORKERS = 2
"""Threads: while one waits for the database, the other reads the next requests."""
_REST = 1.0
"""Seconds without a try after the database failed."""
_ENDS_WITHIN = 30.0
"""Seconds that the threads get to land what is queued at the end."""
_DURABLY = sa.text(
    "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'"
)
"""For the transaction: an acknowledged span survives a crash of the server, however that is set."""
_AT_FAULT = (psycopg.errors.DataError, psycopg.errors.IntegrityError, psycopg.errors.ProgramLimitExceeded)
"""Errors of the database that are about the spans; all others are about the database."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request: `stored`, `unusable` (its client must not send it again) or `unavailable`."""

    kind: Literal["stored", "unusable", "unavailable"]
    rejected: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Request:
    body: bytes
    encoding: Encoding
    signal: Signal
    outcome: "Future[Outcome]"


@dataclass(slots=True)
class Totals:
    """What was landed since the start."""

    requests: int = 0
    transactions: int = 0
    new: int = 0
    changed: int = 0
    same: int = 0


class GroupCommit:
    """Lands requests in the order in which they come, as many in one transaction as are waiting.

    Args:
        engine: of a database with the tables of stepacc.
        source: to which the spans belong.
        redactor: what redacts them; None where the source says to store values as they are.
        landed: called after each commit, by one of the threads, with the number of requests and what became of their
            spans.
        failed: called when the database fails after it worked, with a sentence, and with None when it works again.
    """

    def __init__(
        self,
        engine: sa.Engine,
        source: str,
        *,
        redactor: Redactor | None = None,
        landed: Callable[[int, Landed], None] = lambda _requests, _landed: None,
        failed: Callable[[str | None], None] = lambda _sentence: None,
    ) -> None:
        self.totals = Totals()
        self._engine = engine
        self._source = source
        self._redactor = redactor
        self._landed = landed
        self._failed = failed
        self._waiting: deque[_Request] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._failure: str | None = None
        self._resting_until = 0.0
        self._threads = [threading.Thread(target=self._work, name=f"landing-{n}", daemon=True) for n in range(_WORKERS)]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Land what is queued and end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_ENDS_WITHIN)

    def submit(self, body: bytes, encoding: Encoding, signal: Signal = "traces") -> "Future[Outcome]":
        """Queue a request; its outcome is there once it is committed, or cannot be."""
        request = _Request(body, encoding, signal, Future())
        with self._changed:
            self._waiting.append(request)
            self._changed.notify()
        return request.outcome

    def unavailable(self) -> str | None:
        """Return why the database was away a moment ago, so that nothing is worth queueing, or None."""
        return self._failure if time.monotonic() < self._resting_until else None

    def check(self) -> str | None:
        """Ask the database whether it answers; return None, or a sentence."""
        try:
            with self._engine.connect() as connection:
                connection.execute(sa.text("SELECT 1"))
        except SQLAlchemyError as error:
            return _sentence(error)
        return None

    def _work(self) -> None:
        while batch := self._take():
            try:
                self._handle(batch)
            except Exception as error:  # noqa: BLE001 - the thread must outlive any request
                said = f"Landing failed ({type(error).__name__}); try again."  # never its values
                self._settle(batch, Outcome("unavailable", message=said))

    def _take(self) -> list[_Request]:
        """Wait for requests and return some, none at the end; those whose client's answer was given up are left out."""
        batch: list[_Request] = []
        size = 0
        with self._changed:
            while not batch and (self._waiting or not self._closed):
                while not self._waiting and not self._closed:
                    self._changed.wait()
                while self._waiting and size < _BATCH_BYTES:
                    request = self._waiting.popleft()
                    if request.outcome.set_running_or_notify_cancel():
                        batch.append(request)
                        size += len(request.body)
        return batch

    def _handle(self, batch: list[_Request]) -> None:
        reads = [read_request(request.body, request.encoding, request.signal) for request in batch]
        usable: list[tuple[_Request, Read]] = []
        for request, read in zip(batch, reads, strict=True):
            if read.unusable:
                self._settle([request], Outcome("unusable", read.rejected, read.message))
            else:
                usable.append((request, read))
        if usable:
            self._land(usable)

    def _land(self, batch: list[tuple[_Request, Read]]) -> None:
        """Land requests in one transaction; where one of several is at fault, each alone."""
        try:
            with self._engine.begin() as connection:
                connection.execute(_DURABLY)
                spans = (span for _, read in batch for span in read.spans)
                landed = land_spans(connection, self._source, spans, self._redactor)
        except (SQLAlchemyError, psycopg.Error, StepaccError) as error:
            if not _at_fault(error):
                self._rest(error)
                self._settle([request for request, _ in batch], Outcome("unavailable", message=_sentence(error)))
            elif len(batch) > 1:
                for each in batch:
                    self._land([each])
            else:
                message = f"The database refuses the spans: {_sentence(error)}"
                self._settle([batch[0][0]], Outcome("unusable", len(batch[0][1].spans), message))
            return
        self._committed(len(batch), landed)
        for request, read in batch:
            self._settle([request], Outcome("stored", read.rejected, read.message))

    def _committed(self, requests: int, landed: Landed) -> None:
        with self._changed:
            totals = self.totals
            totals.requests += requests
            totals.transactions += 1
            totals.new += landed.new
            totals.changed += landed.changed
            totals.same += landed.same
            recovered, self._failure, self._resting_until = self._failure is not None, None, 0.0
        if recovered:
            self._failed(None)
        self._landed(requests, landed)

    def _rest(self, error: Exception) -> None:
        sentence = _sentence(error)
        with self._changed:
            first, self._failure = self._failure is None, sentence
            self._resting_until = time.monotonic() + _REST
        if first:
            self._failed(sentence)

    @staticmethod
    def _settle(requests: list[_Request], outcome: Outcome) -> None:
        for request in requests:
            if not request.outcome.done():
                request.outcome.set_result(outcome)


def _at_fault(error: Exception) -> bool:
    original = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(original, _AT_FAULT)


def _sentence(error: Exception) -> str:
    """Return the first line of what the database said; never its statement or parameters."""
    original = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    said = str(original).strip().splitlines()
    return said[0] if said else type(original).__name__
