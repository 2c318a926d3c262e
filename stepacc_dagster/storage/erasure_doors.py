"""The doors by which traces come in, once something was erased: what belongs to it is met there and left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from stepacc_core.model import RawSpan
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.erasure import erase_at_door
from stepacc_dagster.storage.tombstones import digests_of, erased_people, erased_traces, salt_of

_STORED = sa.text("""
    SELECT ident FROM unnest(CAST(:ids AS text[])) ident
    WHERE EXISTS (SELECT 1 FROM stepacc.otel_spans WHERE source = :source AND trace_id = ident)
       OR EXISTS (
           SELECT 1 FROM stepacc.traces WHERE source = :source AND trace_id = ident AND erased_at IS NULL
       )
""")


class LandingDoor:
    """The landing of raw spans: spans come in batches, in any order, and a trace in any number of pieces.

    Made under the lock of landings, under which no erasure of the source can begin.
    """

    def __init__(self, conn: sa.Connection, source: str) -> None:
        self._conn = conn
        self._source = source
        self._salt = salt_of(conn)

    def admitted(self, spans: Sequence[RawSpan]) -> Sequence[RawSpan]:
        """Return the spans that may be stored: those of traces that were not erased, and belong to nobody who was.

        Where a span names an erased session or user, its whole trace is erased, also what of it landed, was ingested
        or scored before.
        """
        if self._salt is None:
            return spans
        traces: dict[str, list[RawSpan]] = {}
        for span in spans:
            traces.setdefault(encode.stored_id(span.trace_id), []).append(span)
        erased = dict(erased_traces(self._conn, self._source, traces))
        found = self._belonging({ident: group for ident, group in traces.items() if ident not in erased})
        if found:
            erase_at_door(self._conn, "landing", self._source, found)
        if not erased and not found:
            return spans
        return [span for ident, group in traces.items() if ident not in erased and ident not in found for span in group]

    def _belonging(self, traces: Mapping[str, list[RawSpan]]) -> dict[str, int]:
        assert self._salt is not None  # noqa: S101 (for the type checker)
        named = {ident: digests_of(self._salt, group) for ident, group in traces.items()}
        digests = set[str]().union(*named.values())
        people = erased_people(self._conn, self._source, digests) if digests else {}
        return _found(named, people)


@dataclass(slots=True)
class IngestDoor:
    """The ingest of a window: traces come whole, one at a time.

    Attributes:
        engine: of the database of stepacc.
        source: whose traces they are.
        found: traces that belong to an erased session or user, with the erasure.
    """

    engine: sa.Engine
    source: str
    found: dict[str, int] = field(default_factory=dict)
    _salt: bytes | None = None
    _people: Mapping[str, int] | None = None

    def admits(self, trace_id: str, spans: Iterable[RawSpan]) -> bool:
        """Tell whether a trace may be stored as far as the sessions and users go that its spans name.

        The tombstones are read with the first trace, for which the ingest has to hold its lock already.
        """
        if self._people is None:
            with self.engine.connect() as connection:
                self._salt = salt_of(connection)
                self._people = erased_people(connection, self.source) if self._salt else {}
        if not self._people or self._salt is None:
            return True
        ident = encode.stored_id(trace_id)
        found = _found({ident: digests_of(self._salt, spans)}, self._people)
        self.found |= found
        return not found

    def still_stored(self, conn: sa.Connection) -> dict[str, int]:
        """Return those of the traces found of which something is stored, with the erasure."""
        if not self.found:
            return {}
        stored = conn.scalars(_STORED, {"source": self.source, "ids": list(self.found)})
        return {ident: self.found[ident] for ident in stored}


def _found(named: Mapping[str, set[str]], people: Mapping[str, int]) -> dict[str, int]:
    """Return the traces of which a digest is among those of erased people, with the first erasure of them."""
    met = {ident: digests & people.keys() for ident, digests in named.items()}
    return {ident: min(people[digest] for digest in digests) for ident, digests in met.items() if digests}
