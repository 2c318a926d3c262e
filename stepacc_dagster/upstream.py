"""What Dagster is told of the tables that others write: agents leave traces, people annotate.

Each partition that has something new gets one materialisation, with its data version: by these Dagster counts which
partitions are filled. Beside them a step leaves one observation of the whole asset, since for an asset that Dagster
does not make the UI shows observations as its latest event. An observation of a partition would say more, but must not
be made in the step that reads it: Dagster takes it for news that came after, and shows what was just made of it as out
of date.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import dagster as dg

from stepacc_core.fingerprint import fingerprint
from stepacc_dagster.partitions import in_words


@dataclass(frozen=True, slots=True)
class Upstream:
    """An asset that others write, as one step finds it; `news` says what is new in the partitions that are told of."""

    context: dg.AssetExecutionContext
    key: dg.AssetKey
    news: str
    versions: dict[str, str] = field(default_factory=dict)
    totals: Counter[str] = field(default_factory=Counter)

    def tell(self, partition: str, version: str, metadata: Mapping[str, int], totals: Mapping[str, int]) -> None:
        """Tell of a partition in which there is something new.

        Args:
            partition: its key.
            version: the version of its data.
            metadata: counts to show with it.
            totals: counts to add up over the partitions of the step.
        """
        event = dg.AssetMaterialization(
            self.key, partition=partition, metadata=metadata, tags={"dagster/data_version": version}
        )
        self.context.log_event(event)
        self.versions[partition] = version
        self.totals.update(totals)

    def tell_of_all(self) -> None:
        """Tell of all partitions told of so far; of none, nothing."""
        if not self.versions:
            return
        event = dg.AssetObservation(
            self.key,
            description=f"{self.news} in {in_words(self.versions)}.",
            metadata={"partitions_with_news": len(self.versions), **self.totals},
            tags={"dagster/data_version": fingerprint(self.versions)},
        )
        self.context.log_event(event)


@contextmanager
def upstream(context: dg.AssetExecutionContext, key: dg.AssetKey, news: str) -> Iterator[Upstream]:
    """Give the asset to tell of; the observation comes at the end, also where some partitions failed."""
    asset = Upstream(context, key, news)
    try:
        yield asset
    finally:
        asset.tell_of_all()
