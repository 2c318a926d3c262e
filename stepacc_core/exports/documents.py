"""JSON text to documents: one a line, one indented, several indented after each other, or one long list.

Lines are read one at a time. Text that is laid out over several lines has to be held as a whole.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stepacc_core.conventions.values import decode
from stepacc_core.errors import ReadError
from stepacc_core.shown import begun

_SHOWN = 80
_GAPS = " \t\r\n,"

Document = tuple[str, Any]
"""Where a document stands, as `line 3` or `record 5`, and its JSON value."""


def read_documents(lines: Iterable[str | bytes]) -> Iterator[Document | ReadError]:
    """Yield the JSON documents of a text in their order, and an error in the place of what is not JSON.

    The items of a list come one by one. A line that cannot be parsed costs only itself; in text over several lines
    the items before the fault are kept.

    Args:
        lines: the lines of a file. Bytes are taken as UTF-8.
    """
    filled = ((number, written) for number, line in enumerate(lines, start=1) if (written := text_of(line)))
    for number, written in filled:
        if opens_indented(written):
            yield from _whole([(number, written), *filled])
        else:
            yield from _line(number, written)
            for later, text in filled:
                yield from _line(later, text)


def text_of(line: str | bytes) -> str:
    """Return a line as text, without surrounding space and byte order mark."""
    written = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    return written.strip().removeprefix("\ufeff")


def opens_indented(line: str) -> bool:
    """Tell whether a first line is only the beginning of a document that goes on below it."""
    return line in ("{", "[") or (line[0] in "{[" and line[-1] in "{[,")


def _line(number: int, written: str) -> Iterator[Document | ReadError]:
    try:
        yield from _items(f"line {number}", decode(written))
    except ValueError as error:
        yield _not_json(f"Line {number}", error, written)


def _items(where: str, value: Any) -> Iterator[Document]:
    if isinstance(value, list):
        yield from ((f"{where}, record {place}", item) for place, item in enumerate(value, start=1))
    else:
        yield where, value


def _whole(numbered: list[tuple[int, str]]) -> Iterator[Document | ReadError]:
    written = "\n".join(line for _, line in numbered)
    try:
        value = decode(written)
    except ValueError:
        yield from _by_line(numbered) if _is_by_line(numbered) else _one_by_one(written)
    else:
        listed = value if isinstance(value, list) else [value]
        yield from ((f"record {place}", item) for place, item in enumerate(listed, start=1))


def _by_line(numbered: list[tuple[int, str]]) -> Iterator[Document | ReadError]:
    for number, written in numbered:
        yield from _line(number, written)


def _is_by_line(numbered: list[tuple[int, str]]) -> bool:
    """Tell whether a later line is a document of its own: the first one is then cut off rather than indented."""
    return any(written[0] == "{" and written[-1] == "}" and _parses(written) for _, written in numbered[1:])


def _parses(written: str) -> bool:
    try:
        return isinstance(json.loads(written), Mapping) and len(written) > len("{}")
    except (ValueError, RecursionError):
        return False


def _one_by_one(written: str) -> Iterator[Document | ReadError]:
    """Yield documents, or items of one list, until one of them cannot be parsed."""
    decoder = json.JSONDecoder()
    at = 1 if written[0] == "[" else 0
    place = 0
    while (at := _next(written, at)) < len(written) and written[at] != "]":
        place += 1
        try:
            _, end = decoder.raw_decode(written, at)
            yield f"record {place}", decode(written[at:end])
        except (ValueError, RecursionError) as error:
            yield _not_json(f"Record {place}", error, written[at:])
            return
        at = end


def _next(written: str, at: int) -> int:
    while at < len(written) and written[at] in _GAPS:
        at += 1
    return at


def _not_json(where: str, error: Exception, written: str) -> ReadError:
    reason = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
    kept = "the other lines were read" if where.startswith("Line") else "what stands before it was read"
    return ReadError(f"{where} is not JSON ({reason}): {begun(written, _SHOWN)!r}. Correct or remove it; {kept}.")
