"""Baselines in Postgres: setting one, and reading the one in force."""

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from stepacc_core.comparison.baselines import Baseline
from stepacc_core.comparison.observations import Counts, Observation, Selection
from stepacc_core.errors import ConfigError
from stepacc_core.model import PartitionType
from stepacc_dagster.errors import UnknownIdError
from stepacc_dagster.storage import encode
from stepacc_dagster.storage.baseline_tables import baseline_scores, baselines
from stepacc_dagster.storage.locks import lock, lock_shared
from stepacc_dagster.storage.paired import observations


@dataclass(frozen=True, slots=True)
class StoredBaseline:
    """A revision of a baseline, without its scores."""

    id: int
    source: str
    name: str
    revision: int
    metric: str
    metric_version: str
    config_hash: str
    partition_type: PartitionType
    first_window: str
    last_window: str
    scored: int
    mean: float
    author: str
    note: str
    created_at: datetime

    @property
    def selection(self) -> Selection:
        """Which scores it was made of."""
        return Selection(
            self.source,
            self.metric,
            self.metric_version,
            self.config_hash,
            self.partition_type,
            self.first_window,
            self.last_window,
        )


def set_baseline(
    conn: sa.Connection, name: str, selection: Selection, *, author: str = "", note: str = ""
) -> StoredBaseline:
    """Keep the current scores of a selection as a baseline, in a new revision where there is one of that name.

    Failures and what is not applicable are left out: they are no scores.

    Raises:
        ConfigError: nothing is scored, or the name is empty.
    """
    if not name.strip():
        msg = f"A baseline cannot be called {name!r}; give it a name."
        raise ConfigError(msg, "name")
    lock(conn, "baselines", selection.source, name)
    lock_shared(conn, "erasure", selection.source)
    observed = observations(conn, selection)
    counts = Counts.of(observed)
    if counts.mean is None:
        msg = (
            f"Nothing is scored in {selection}, so there is nothing to keep as a baseline; evaluate it first "
            "(`stepacc materialize`), or choose other windows."
        )
        raise ConfigError(msg)
    own = sa.and_(baselines.c.source == selection.source, baselines.c.name == name)
    last = conn.scalar(sa.select(sa.func.max(baselines.c.revision)).where(own))
    written = conn.execute(
        sa.insert(baselines)
        .values(
            source=selection.source,
            name=name,
            revision=(last or 0) + 1,
            metric=selection.metric,
            metric_version=selection.metric_version,
            config_hash=selection.config_hash,
            partition_type=selection.partition_type,
            first_window=selection.first,
            last_window=selection.last,
            scored=counts.scored,
            mean=counts.mean,
            author=encode.text(author),
            note=encode.text(note),
        )
        .returning(baselines)
    ).one()
    conn.execute(
        sa.insert(baseline_scores),
        [
            {
                "baseline_id": written.id,
                "partition_id": each.partition_id,
                "task_id": each.task_id,
                "score": each.score,
                "reference_hash": each.reference_hash,
                "annotation_id": each.annotation_id,
                "score_id": each.score_id,
            }
            for each in observed
            if each.score is not None
        ],
    )
    return StoredBaseline(**written._mapping)  # noqa: SLF001 (how SQLAlchemy calls a row's columns by name)


def list_baselines(conn: sa.Connection, source: str | None = None) -> list[StoredBaseline]:
    """Return the baselines in force, of one source or of all, by source and name."""
    later = baselines.alias()
    newer = sa.exists().where(
        later.c.source == baselines.c.source,
        later.c.name == baselines.c.name,
        later.c.revision > baselines.c.revision,
    )
    query = sa.select(baselines).where(~newer).order_by(baselines.c.source, baselines.c.name)
    if source is not None:
        query = query.where(baselines.c.source == source)
    return [StoredBaseline(**row) for row in conn.execute(query).mappings()]


def stored_baseline(conn: sa.Connection, source: str, name: str) -> StoredBaseline:
    """Return the baseline in force of that name.

    Raises:
        UnknownIdError: the source has none of that name.
    """
    there = list_baselines(conn, source)
    for each in there:
        if each.name == name:
            return each
    known = ", ".join(f"`{each.name}`" for each in there) or "none"
    msg = (
        f"Source `{source}` has no baseline `{name}`; there are: {known}. `stepacc gate baseline set {name} --source "
        f"{source}` makes one of the scores there are."
    )
    raise UnknownIdError(msg)


def load_baseline(conn: sa.Connection, stored: StoredBaseline) -> Baseline:
    """Return a baseline with its scores, by id of the occurrence."""
    own = baseline_scores.c.baseline_id == stored.id
    rows = conn.execute(sa.select(baseline_scores).where(own).order_by(baseline_scores.c.partition_id))
    kept = tuple(
        Observation(
            partition_type=stored.partition_type,
            partition_id=row.partition_id,
            status="scored",
            score=row.score,
            task_id=row.task_id,
            reference_hash=row.reference_hash,
            annotation_id=row.annotation_id,
            score_id=row.score_id,
        )
        for row in rows
    )
    return Baseline(stored.name, stored.revision, stored.selection, kept)
