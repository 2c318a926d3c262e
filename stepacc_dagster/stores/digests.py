"""Changes by comparison: a digest of each stretch of time, against the one of last time.

For stores whose rows tell neither number nor time of their last write. The cursor grows with the stretches that are
looked at, not with what is in them.
"""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stepacc_dagster.stores import cursors

KIND = "digest"


@dataclass(frozen=True, slots=True)
class ChangedPlaces:
    """Stretches of time, named by their start.

    Attributes:
        changed: those whose digest is another now, in order.
        known_before: those of them that had a digest last time.
        cursor: the digests of this time.
    """

    changed: list[int]
    known_before: list[int]
    cursor: str


def changed_places(
    conn: sa.Connection, cursor: str | None, statement: str, values: dict[str, Any], *, forgotten_before: int
) -> ChangedPlaces:
    """Compare digests with those of a cursor.

    Args:
        conn: the store's database.
        cursor: of last time; without one, all there is has changed.
        statement: SQL of start, count and sum of hashes of each stretch.
        values: its parameters.
        forgotten_before: start of the first stretch that is still looked at; older ones are left out of the cursor.
    """
    content = cursors.content(cursor, KIND)
    before: dict[str, str] = content["seen"] if content else {}
    now = {str(place): f"{count}:{digest}" for place, count, digest in conn.execute(sa.text(statement), values)}
    changed = {place for place in now if before.get(place) != now[place]}
    gone = {place for place in before if place not in now and int(place) >= forgotten_before}
    kept = {place: digest for place, digest in now.items() if int(place) >= forgotten_before}
    return ChangedPlaces(
        sorted(map(int, changed | gone)),
        sorted(int(place) for place in changed | gone if place in before),
        cursors.written({"by": KIND, "seen": kept}),
    )
