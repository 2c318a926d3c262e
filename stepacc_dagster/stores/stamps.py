"""Changes by the time of a row's last write.

Such times are not in the order of commits, and servers' clocks differ: a row may show with a time before one already
seen. So the newest stretch is looked at again each time, and the cursor keeps a digest of it per window: what was seen
already is not told again. Where a clock went back, or a row's time is wrong, the newest time seen lies ahead of the
clock; the stretch then begins before the clock's time, or rows would be missed until it has caught up.
"""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stepacc_dagster.stores import cursors
from stepacc_dagster.stores.base import Changes
from stepacc_dagster.stores.sql import floored, length_in, window_keys
from stepacc_dagster.windows import WindowKind

KIND = "stamp"
_NEVER = -1
"""Before all times that count."""
_CLOCK = sa.text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)")
_HOUR = 3_600_000_000
"""A clock that lies behind is read by whole hours, so that with nothing new the cursor stays the same."""


@dataclass(frozen=True, slots=True)
class StampedRows:
    """Rows that have a time of last write.

    Attributes:
        newest: SQL of the time of the newest row, in microseconds.
        rows: SQL of the rows written between `:from` (exclusive) and `:last`, in microseconds: `trace`, `id` as text
            and `stamp` in microseconds.
        start: SQL of the start of the trace `traced.trace`, as whole numbers of `unit_ns`.
        unit_ns: nanoseconds of that unit.
    """

    newest: str
    rows: str
    start: str
    unit_ns: int

    def changes(
        self, conn: sa.Connection, cursor: str | None, kind: WindowKind, reread_seconds: int, values: dict[str, Any]
    ) -> Changes:
        """Return the windows of traces whose rows were written since a cursor."""
        before = cursors.content(cursor, KIND)
        seen: dict[str, str] = before["seen"] if before else {}
        until: int = before["until"] if before else _NEVER
        newest = conn.scalar(sa.text(self.newest), values)
        if newest is None:
            return Changes((), cursor or "")
        last, margin = max(newest, until), reread_seconds * 1_000_000
        clock: int = conn.execute(_CLOCK).scalar_one()
        again = (last if last <= clock else clock - clock % _HOUR) - margin
        bounds = values | {
            "from": min(before.get("again", until - margin), again) if before else _NEVER,
            "until": until,
            "last": last,
            "again": again,
            "length": length_in(kind, self.unit_ns),
        }
        changed, now = set(seen), {}
        for start, fresh, old_digest, new_digest in conn.execute(sa.text(self._by_window()), bounds):
            for key in window_keys([start], kind, self.unit_ns):
                changed.discard(key)
                if fresh or seen.get(key, "0") != old_digest:
                    changed.add(key)
                if new_digest != "0":
                    now[key] = new_digest
        return Changes(
            tuple(sorted(changed)), cursors.written({"by": KIND, "until": last, "again": again, "seen": now})
        )

    def _by_window(self) -> str:
        return f"""
            WITH written AS ({self.rows}),
            traced AS (
                SELECT trace, bool_or(stamp > :until) AS fresh,
                       {_digest("stamp <= :until")} AS old_digest, {_digest("stamp > :again")} AS new_digest
                FROM written WHERE trace IS NOT NULL GROUP BY trace
            )
            SELECT {floored("start")} AS place, bool_or(fresh),
                   CAST(sum(old_digest) AS text), CAST(sum(new_digest) AS text)
            FROM traced CROSS JOIN LATERAL (SELECT {self.start} AS start) span
            WHERE start IS NOT NULL GROUP BY place
        """  # noqa: S608 (made of parts that hold quoted names only)


def _digest(condition: str) -> str:
    """Return the SQL of a number that tells which rows there are, in whatever order; 0 for none."""
    return f"coalesce(sum(hashtextextended(concat_ws('/', id, stamp), 0)) FILTER (WHERE {condition}), 0)"
