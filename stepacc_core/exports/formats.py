"""Which format a text of traces has, told by content, and its spans. To add one, give its module a row."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from stepacc_core.conventions.values import decode
from stepacc_core.errors import ReadError
from stepacc_core.exports import atif, langfuse, langsmith
from stepacc_core.exports.documents import opens_indented, read_documents, text_of
from stepacc_core.log_records import LogEvent
from stepacc_core.model import RawSpan
from stepacc_core.otlp import read_otlp


@dataclass(frozen=True, slots=True)
class ExportFormat:
    """One row of the table: its name in messages, when it applies to a document, and how that is read."""

    name: str
    recognises: Callable[[Any], bool]
    read: Callable[[str, Any], Iterator[RawSpan | ReadError]]


TABLE: tuple[ExportFormat, ...] = (
    ExportFormat("ATIF", atif.recognises, atif.read),
    ExportFormat("LangSmith", langsmith.recognises, langsmith.read),
    ExportFormat("Langfuse", langfuse.recognises, langfuse.read),
)

_OTLP = re.compile(r'\{\s*"resource_?(?:[sS]pans|[lL]ogs)"\s*:')
"""How nearly all OTLP/JSON begins; it need not be parsed twice."""
_TRIED = 20
"""Lines at the beginning that may be broken before a text is taken to be OTLP."""


def read_trace_lines(lines: Iterable[str | bytes]) -> Iterator[RawSpan | LogEvent | ReadError]:
    """Yield the spans of a text of traces in their order, and an error in the place of what cannot be read.

    Log records of OTLP come as events with the key of their span.

    The first document that can be parsed tells the format; what no row of the table recognises is read as OTLP/JSON.

    Args:
        lines: the lines of a file. Bytes are taken as UTF-8.
    """
    remaining = iter(lines)
    begin = _beginning(remaining)
    chosen = _format_of(begin)
    if chosen is None:
        yield from read_otlp(chain(begin, remaining))
        return
    for document in read_documents(chain(begin, remaining)):
        if isinstance(document, ReadError):
            yield document
        else:
            yield from chosen.read(*document)


def _beginning(lines: Iterator[str | bytes]) -> list[str | bytes]:
    """Take lines up to the first that can be parsed; all of them, where the first opens an indented document."""
    taken: list[str | bytes] = []
    tried = 0
    for line in lines:
        taken.append(line)
        written = text_of(line)
        if not written:
            continue
        if tried == 0 and opens_indented(written):
            taken += lines
            break
        tried += 1
        if tried == _TRIED or _OTLP.match(written) or _parses(written):
            break
    return taken


def _parses(written: str) -> bool:
    try:
        decode(written)
    except ValueError:
        return False
    return True


def _format_of(begin: list[str | bytes]) -> ExportFormat | None:
    if _OTLP.match("".join(islice(filter(None, map(text_of, begin)), 2))):
        return None
    for document in read_documents(begin):
        if not isinstance(document, ReadError):
            return next((each for each in TABLE if each.recognises(document[1])), None)
    return None
