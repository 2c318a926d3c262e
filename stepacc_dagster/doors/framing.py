"""Files of OTLP as protobuf: told from text, and split into messages; without protobuf's own packages.

A file holds one message, or messages with a length before each: of four bytes, big-endian, as the OpenTelemetry
Collector's file exporter writes them, or a varint, as protobuf's own libraries do.
"""

from collections.abc import Callable, Iterable, Iterator

from stepacc_core.errors import ReadError

LARGEST_MESSAGE = 256 * 1024 * 1024
"""Bytes of one message in a file with lengths; a larger length is taken for a broken one."""
HEAD = 256
"""Bytes that tell what a file is."""

_CONTROL = frozenset(range(0x20)) - frozenset(b"\t\n\r")
_BIG_ENDIAN = 4
_FIELD_1 = 0x0A
_INNER = frozenset({0x0A, 0x12, 0x1A})
"""Tags of the fields of `ResourceSpans`, one of which stands first in it."""


def looks_like_protobuf(head: bytes) -> bool:
    """Tell from the first `HEAD` bytes of a file whether it holds OTLP as protobuf.

    Text has no control characters but tabs and line ends; a message always has some, and begins with field 1.
    """
    return not _CONTROL.isdisjoint(head) and _framing(head) is not None


def split(chunks: Iterable[bytes]) -> Iterator[bytes | ReadError]:
    """Yield the messages of a file, and an error where a length cannot be followed.

    Args:
        chunks: the bytes of the file, in pieces of any size.
    """
    reader = _Reader(chunks)
    framing = _framing(reader.head(HEAD)) or _whole
    yield from framing(reader)


class _Reader:
    """Pieces of bytes, read as a stream."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._held = b""

    def head(self, size: int) -> bytes:
        """Return up to so many bytes without taking them."""
        pieces, held = [self._held], len(self._held)
        while held < size and (piece := next(self._chunks, None)) is not None:
            pieces.append(piece)
            held += len(piece)
        self._held = b"".join(pieces)
        return self._held[:size]

    def read(self, size: int) -> bytes:
        """Take up to so many bytes."""
        self.head(size)
        taken, self._held = self._held[:size], self._held[size:]
        return taken

    def rest(self) -> bytes:
        """Take all bytes that are left."""
        return b"".join((self._held, *self._chunks))


_Framing = Callable[[_Reader], Iterator[bytes | ReadError]]


def _framing(head: bytes) -> _Framing | None:
    """Return how messages follow each other in a file that begins so, or None where that is not OTLP."""
    if _begins_message(head):
        return _whole
    length = int.from_bytes(head[:_BIG_ENDIAN], "big")
    if len(head) > _BIG_ENDIAN and 0 < length <= LARGEST_MESSAGE and _begins_message(head[_BIG_ENDIAN:]):
        return _after_big_endian
    size, used = _varint(head)
    return _after_varint if used and size and _begins_message(head[used:]) else None


def _begins_message(head: bytes) -> bool:
    """Tell whether bytes begin with field 1 holding a message that could be a `ResourceSpans`."""
    if head[:1] != bytes([_FIELD_1]):
        return False
    size, used = _varint(head[1:])
    inner = head[1 + used : 2 + used]
    return bool(used) and (inner[0] in _INNER if size and inner else not size)


def _varint(data: bytes) -> tuple[int, int]:
    """Return the number that bytes begin with, and how many bytes it takes; 0 bytes where there is none."""
    value = 0
    for place, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the bit that says that another byte follows
            return value, place + 1
    return 0, 0


def _whole(reader: _Reader) -> Iterator[bytes | ReadError]:
    yield reader.rest()


def _after_big_endian(reader: _Reader) -> Iterator[bytes | ReadError]:
    def length() -> int | None:
        prefix = reader.read(_BIG_ENDIAN)
        if not prefix:
            return None
        return int.from_bytes(prefix, "big") if len(prefix) == _BIG_ENDIAN else -1

    yield from _by_length(reader, length)


def _after_varint(reader: _Reader) -> Iterator[bytes | ReadError]:
    def length() -> int | None:
        prefix = reader.read(1)
        if not prefix:
            return None
        while prefix[-1] >= 0x80 and len(prefix) < 5 and (more := reader.read(1)):  # noqa: PLR2004 - as in `_varint`
            prefix += more
        size, used = _varint(prefix)
        return size if used else -1

    yield from _by_length(reader, length)


def _by_length(reader: _Reader, length: Callable[[], int | None]) -> Iterator[bytes | ReadError]:
    number = 0
    while (size := length()) is not None:
        number += 1
        message = reader.read(size) if 0 <= size <= LARGEST_MESSAGE else b""
        if len(message) != size:
            what = f"is cut off: {len(message)} of {size} bytes are there" if message else "has a length that is none"
            yield ReadError(f"Message {number} {what}. The messages before it were read; nothing behind it can be.")
            return
        yield message
