"""Which rows came since somebody looked, told exactly: by the transactions that wrote them, whenever they ended.

Numbers and times are given to rows when they are written, and rows show when their transaction commits, in any order.
A snapshot says of every transaction whether it had been committed by then, so that no row is ever passed by.
"""

from dataclasses import dataclass

import sqlalchemy as sa

_BEGINNING = "1:1:"
"""A snapshot that sees no transaction."""
_END = "1:9223372036854775807:"
"""One that sees every transaction. What is committed is told then, whatever number its transaction had."""

# A standby's snapshot does not list what is under way on its primary, but knows where that begins. A snapshot that is
# ahead of the server was made by another, as after a restore of a dump: numbers of transactions began anew.
_LOOK = sa.text("""
    SELECT CASE WHEN pg_is_in_recovery()
                THEN format('%s:%s:', pg_snapshot_xmin(now), pg_snapshot_xmin(now))
                ELSE CAST(now AS text) END AS snapshot,
           coalesce(pg_snapshot_xmax(CAST(:seen AS pg_snapshot)) > pg_snapshot_xmax(now), true) AS anew
    FROM pg_current_snapshot() now
""")


def came_since(seen: str, now: str) -> str:
    """Return SQL that holds for the rows with a column `written_in` (xid8) that came between two snapshots.

    Args:
        seen: the earlier one, as the query calls it.
        now: the later one.
    """
    return f"""written_in >= pg_snapshot_xmin(CAST({seen} AS pg_snapshot))
        AND NOT pg_visible_in_snapshot(written_in, CAST({seen} AS pg_snapshot))
        AND pg_visible_in_snapshot(written_in, CAST({now} AS pg_snapshot))"""


CAME_SINCE = came_since(":seen", ":now")
"""The same between the `bounds` of a look."""


@dataclass(frozen=True, slots=True)
class Look:
    """A look at the rows that are committed.

    Attributes:
        snapshot: the snapshot of this look, as text, to go on from next time.
        seen: the snapshot from which this look goes on.
        until: the snapshot up to which it goes.
    """

    snapshot: str
    seen: str
    until: str

    @property
    def anew(self) -> bool:
        """Whether it begins at the beginning."""
        return self.seen == _BEGINNING

    @property
    def bounds(self) -> dict[str, str]:
        """The parameters of `CAME_SINCE`."""
        return {"seen": self.seen, "now": self.until}


def look(conn: sa.Connection, seen: str | None) -> Look:
    """Begin a look at what came since an earlier one; the rows are read by later statements of the connection.

    Args:
        conn: to the database, at READ COMMITTED or higher, whose transaction has written no such rows itself.
        seen: `snapshot` of the earlier look. None, or one of another server, means from the beginning.
    """
    found = conn.execute(_LOOK, {"seen": seen}).one()
    if found.anew:
        return Look(found.snapshot, _BEGINNING, _END)
    return Look(found.snapshot, seen or _BEGINNING, found.snapshot)
