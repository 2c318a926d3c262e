"""The ASGI application of `stepacc collect`: traces and log records by OTLP over HTTP, acknowledged once committed.

Memory is bounded: the bodies of all requests that wait share a number of bytes, packed and unpacked ones counted, and a
request that finds no room is answered 503 with `Retry-After`. Reading and writing is done by the threads of the group
commit; the event loop only moves bytes.
"""

import asyncio
import hmac
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from stepacc_dagster.doors.group_commit import GroupCommit
from stepacc_dagster.doors.otlp_http import CONTENT_TYPES, Encoding, Signal, accepted, refused, unpacked

_MIB = 1024 * 1024
_AWAY_RETRY = 2
_FULL_RETRY = 1
"""Seconds of `Retry-After`; exporters give up when they exceed what is left of their own timeout of some seconds."""
_ARRIVES_WITHIN = 30.0
"""Seconds in which a client has to have sent its request."""
_DISCARDED_WITHIN = 5.0
_CHECKED_WITHIN = 5.0
_NO_METRICS = (
    "stepacc collect takes traces and log records, and no metrics: switch that exporter off, as with "
    "OTEL_METRICS_EXPORTER=none."
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is taken in: bytes of one request, also unpacked; bytes and number of all requests that wait."""

    request_bytes: int = 64 * _MIB
    waiting_bytes: int = 128 * _MIB
    waiting_requests: int = 1_000


class _RefusedError(Exception):
    """The request is answered with an error."""

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after


class _Room:
    """The bytes that waiting requests may hold, shared by all of them; counted by several threads."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._lock = threading.Lock()
        self._bytes = 0
        self._requests = 0

    def enter(self) -> "_Place":
        """Give a request its place, to be left at the end.

        Raises:
            _RefusedError: too many are waiting.
        """
        with self._lock:
            if self._requests >= self.limits.waiting_requests:
                msg = f"{self._requests} requests are waiting already; try again."
                raise _RefusedError(503, msg, _FULL_RETRY)
            self._requests += 1
        return _Place(self)

    def take(self, size: int) -> None:
        """Count bytes.

        Raises:
            _RefusedError: there is no room for them now.
        """
        with self._lock:
            if self._bytes + size > self.limits.waiting_bytes:
                msg = f"The requests that are waiting hold {self._bytes} bytes already; try again."
                raise _RefusedError(503, msg, _FULL_RETRY)
            self._bytes += size

    def give_back(self, size: int, *, leaving: bool) -> None:
        """Count bytes down, and the request where it is leaving."""
        with self._lock:
            self._bytes -= size
            self._requests -= leaving


class _Place:
    """What one request holds of the room."""

    def __init__(self, room: _Room) -> None:
        self._room = room
        self._held = 0
        self._form = 0
        """Bytes of the form, packed or unpacked, that is being counted; each may be as large as a request."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._room.give_back(self._held, leaving=True)

    def grow(self, size: int) -> None:
        """Hold further bytes.

        Raises:
            _RefusedError: the request is too large, or there is no room now.
        """
        limit = self._room.limits.request_bytes
        if self._form + size > limit:
            msg = f"The request has more than {limit} bytes, packed or unpacked: send fewer spans at a time."
            raise _RefusedError(413, msg)
        self._room.take(size)
        self._held += size
        self._form += size

    def next_form(self) -> int:
        """Begin to count the unpacked form; return the size of the packed one."""
        size, self._form = self._form, 0
        return size

    def drop(self, size: int) -> None:
        """Hold fewer bytes."""
        self._room.give_back(size, leaving=False)
        self._held -= size


def receiver(commits: GroupCommit, *, token: str | None = None, limits: Limits | None = None) -> Starlette:
    """Make the application.

    Args:
        commits: lands the requests; started and closed with the application.
        token: what clients have to send as bearer token, if anything.
        limits: how much is taken in.
    """
    room = _Room(limits or Limits())

    async def traces(request: Request) -> Response:
        return await export(request, "traces")

    async def logs(request: Request) -> Response:
        return await export(request, "logs")

    async def export(request: Request, signal: Signal) -> Response:
        encoding: Encoding = "json"
        try:
            _authorize(request, token)
            encoding = _encoding(request)
            with room.enter() as place:
                body = await _taken(request, commits, place, room.limits)
                return await _landed(body, encoding, signal, commits)
        except _RefusedError as error:
            await _discard(request, room.limits)
            response = refused(error.status, error.message, encoding, error.retry_after)
            if error.status == 401:  # noqa: PLR2004 - RFC 9110 demands the header
                response.headers["WWW-Authenticate"] = "Bearer"
            return response

    async def health(_: Request) -> Response:
        try:
            problem = await asyncio.wait_for(asyncio.to_thread(commits.check), _CHECKED_WITHIN)
        except TimeoutError:
            problem = f"the database did not answer within {_CHECKED_WITHIN:.0f} s"
        return JSONResponse({"status": "unavailable" if problem else "ok"}, status_code=503 if problem else 200)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        commits.start()
        yield
        await run_in_threadpool(commits.close)

    return Starlette(
        routes=[
            Route("/v1/traces", traces, methods=["POST"]),
            Route("/v1/logs", logs, methods=["POST"]),
            Route("/v1/metrics", _metrics, methods=["POST"]),
            Route("/healthz", health, methods=["GET"]),
        ],
        lifespan=lifespan,
    )


async def _metrics(request: Request) -> Response:
    return refused(404, _NO_METRICS, CONTENT_TYPES.get(_media_type(request), "json"))


async def _discard(request: Request, limits: Limits) -> None:
    """Take what a refused client still sends, in bounds: it reads no answer before it has sent all."""
    size = 0
    try:
        async with asyncio.timeout(_DISCARDED_WITHIN):
            async for piece in request.stream():
                size += len(piece)
                if size > limits.request_bytes:
                    return
    except (TimeoutError, ClientDisconnect):
        return
    except RuntimeError:  # all of it was taken before
        return


def _authorize(request: Request, token: str | None) -> None:
    if token is None:
        # Exporters send no Origin, browsers always do: no web page may write to a receiver that asks for no token.
        if "origin" in request.headers:
            raise _RefusedError(
                403, "Requests of web pages are taken with a bearer token only: start with --token-env."
            )
        return
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    right = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
    if scheme.lower() != "bearer" or not right:
        raise _RefusedError(401, "The bearer token is missing or wrong: send the header Authorization: Bearer <token>.")


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _encoding(request: Request) -> Encoding:
    given = _media_type(request)
    if given not in CONTENT_TYPES:
        msg = f"The Content-Type {given[:80]!r} is not taken: send {' or '.join(CONTENT_TYPES)}."
        raise _RefusedError(415, msg)
    return CONTENT_TYPES[given]


async def _taken(request: Request, commits: GroupCommit, place: _Place, limits: Limits) -> bytes:
    if (why := commits.unavailable()) is not None:
        raise _RefusedError(503, f"The database is away ({why}); try again.", _AWAY_RETRY)
    return await _body(request, place, limits)


async def _landed(body: bytes, encoding: Encoding, signal: Signal, commits: GroupCommit) -> Response:
    outcome = await asyncio.wrap_future(commits.submit(body, encoding, signal))
    if outcome.kind == "unusable":
        raise _RefusedError(400, outcome.message)
    if outcome.kind == "unavailable":
        raise _RefusedError(503, f"The spans could not be stored ({outcome.message}); try again.", _AWAY_RETRY)
    return accepted(encoding, signal, outcome.rejected, outcome.message)


async def _body(request: Request, place: _Place, limits: Limits) -> bytes:
    packing = request.headers.get("content-encoding", "identity").strip().lower()
    if packing not in ("identity", "", "gzip"):
        raise _RefusedError(415, f"The Content-Encoding {packing[:80]!r} is not taken: send gzip, or none.")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limits.request_bytes:
        msg = f"The request has more than {limits.request_bytes} bytes: send fewer spans at a time."
        raise _RefusedError(413, msg)
    pieces: list[bytes] = []
    try:
        async with asyncio.timeout(_ARRIVES_WITHIN):
            async for piece in request.stream():
                place.grow(len(piece))
                pieces.append(piece)
    except TimeoutError:
        raise _RefusedError(408, f"The request did not arrive within {_ARRIVES_WITHIN:.0f} s.") from None
    except ClientDisconnect:
        raise _RefusedError(400, "The client went away before it had sent all.") from None
    body = b"".join(pieces)
    if packing != "gzip":
        return body
    packed = place.next_form()
    try:
        unpacked_body = await run_in_threadpool(unpacked, body, place.grow)
    except ValueError as error:
        raise _RefusedError(400, str(error)) from None
    place.drop(packed)
    return unpacked_body
