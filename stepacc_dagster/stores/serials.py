"""Changes by serial number: rows above the last number seen, and those whose number was missing then.

A sequence hands out numbers when rows are written, and rows show when their transaction commits: a lower number may
show after a higher one. So the cursor keeps the numbers that were missing near its end, and looks for just those.
Numbers that never come, such as those of rejected rows, are dropped once they are old.
"""

from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy as sa

from stepacc_dagster.stores import cursors

_KIND = "serial"


@dataclass(frozen=True, slots=True)
class SerialCursor:
    """The highest number seen, and the ranges of numbers below it that were not there."""

    last: int
    missing: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, cursor: str | None) -> Self | None:
        """Return the cursor that a text holds, None where it holds none."""
        content = cursors.content(cursor, _KIND)
        if content is None:
            return None
        return cls(content["last"], tuple((low, high) for low, high in content["missing"]))

    def written(self) -> str:
        """Return the cursor as text."""
        return cursors.written({"by": _KIND, "last": self.last, "missing": self.missing})


@dataclass(frozen=True, slots=True)
class SerialTable:
    """A table with a serial number; names are quoted SQL."""

    table: str
    number: str

    def now(self, conn: sa.Connection, margin: int) -> SerialCursor | None:
        """Return the cursor of this moment, with the numbers missing among the last `margin`; None without rows."""
        last = conn.scalar(sa.text(f"SELECT max({self.number}) FROM {self.table}"))  # noqa: S608 (quoted)
        if last is None:
            return None
        statement = f"""
            SELECT below + 1, number - 1 FROM (
                SELECT {self.number} AS number, lag(CAST({self.number} AS bigint), 1, CAST(:floor AS bigint)) OVER (
                    ORDER BY {self.number}
                ) AS below
                FROM {self.table} WHERE {self.number} > CAST(:floor AS bigint) AND {self.number} <= :last
            ) near WHERE number > below + 1 ORDER BY number
        """  # noqa: S608 (quoted)
        ranges = conn.execute(sa.text(statement), {"floor": max(last - margin, 0), "last": last})
        return SerialCursor(last, tuple((low, high) for low, high in ranges))

    def since(self, columns: str) -> str:
        """Return the SQL of these columns of the rows that came after one cursor and up to another; see `bounds`."""
        return f"""
            SELECT {columns} FROM {self.table} WHERE {self.number} > :after AND {self.number} <= :last
            UNION ALL
            SELECT {columns} FROM unnest(CAST(:lows AS bigint[]), CAST(:highs AS bigint[])) gap (low, high)
            JOIN {self.table} ON {self.number} BETWEEN gap.low AND gap.high
        """  # noqa: S608 (quoted)


def bounds(before: SerialCursor, now: SerialCursor) -> dict[str, Any]:
    """Return the parameters of `SerialTable.since`."""
    lows = [low for low, _ in before.missing]
    return {"after": before.last, "last": now.last, "lows": lows, "highs": [high for _, high in before.missing]}
