"""What the sources configured on this machine have now: their stores and configs, which no table of stepacc knows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepacc_core.errors import ConfigError
from stepacc_dagster.cli.output import note
from stepacc_dagster.sources import Source, evaluator_of
from stepacc_dagster.storage.lineage import Score
from stepacc_dagster.stores.places import StorePlace, store_place
from stepacc_dagster.trace_links import TraceUrl


@dataclass(frozen=True, slots=True)
class Configured:
    """A source as its `defs.yaml` has it.

    Attributes:
        place: where its store keeps traces.
        url_env: the environment variable that holds the URL of the store's database.
        links: what gives the link to a trace in the store's own UI; None where the source names no address of it.
        config: the metric's config and, where it is not the literal reading, the step policy.
    """

    place: StorePlace
    url_env: str
    links: TraceUrl | None
    metric: str
    metric_version: str
    config_hash: str
    config: Mapping[str, Any]

    @classmethod
    def of(cls, source: Source) -> "Configured":
        """Return what a source has."""
        evaluator = evaluator_of(source)
        manifest, policy = evaluator.metric.manifest, dict(source.step_policy.settings())
        config = evaluator.config.model_dump(mode="json", exclude_none=True)
        return cls(
            place=store_place(source.store),
            url_env=source.store_url_env or source.database_url_env,
            links=source.trace_links,
            metric=manifest.name,
            metric_version=manifest.version,
            config_hash=evaluator.config_hash,
            config={**config, **({"step_policy": policy} if policy else {})},
        )

    def link(self, trace_id: str) -> str | None:
        """Return the link to a trace in the store's own UI; None where there is none."""
        return self.links.of(trace_id) if self.links else None

    def made(self, score: Score) -> bool:
        """Tell whether an evaluation is by the metric version and config that the source has now."""
        own = (self.metric, self.metric_version, self.config_hash)
        return own == (score.metric, score.metric_version, score.config_hash)


def configured_sources() -> Mapping[str, Configured]:
    """Return the sources configured on this machine by name; none, with a note, where a `defs.yaml` is wrong."""
    from stepacc_dagster.definitions import defs_folder, load_sources  # noqa: PLC0415 (loads Dagster)

    try:
        return {source.name: Configured.of(source) for source in load_sources(defs_folder())}
    except ConfigError as error:
        note(f"The stores and present configs of the sources are left out: {error}")
        return {}
