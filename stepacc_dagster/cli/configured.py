"""What the sources configured on this machine have now: their stores and configs, which no table of stepacc knows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepacc_core.errors import StepaccError
from stepacc_dagster.cli.output import note
from stepacc_dagster.evaluators import evaluators_of
from stepacc_dagster.sources import Source
from stepacc_dagster.storage.current import CurrentScore
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
        configs: for each name that rows may have (a metric's, or a member's), the metric's version, config hash, and
            what the hash stands for.
    """

    place: StorePlace
    url_env: str
    links: TraceUrl | None
    configs: Mapping[str, tuple[str, str, Mapping[str, Any]]]

    @classmethod
    def of(cls, source: Source) -> "Configured":
        """Return what a source has."""
        configs: dict[str, tuple[str, str, Mapping[str, Any]]] = {}
        for evaluator in evaluators_of(source):
            own = (evaluator.metric.manifest.version, evaluator.config_hash, evaluator.settings)
            configs |= dict.fromkeys(evaluator.row_names, own)
        return cls(
            place=store_place(source.store),
            url_env=source.store_url_env or source.database_url_env,
            links=source.trace_links,
            configs=configs,
        )

    def link(self, trace_id: str) -> str | None:
        """Return the link to a trace in the store's own UI; None where there is none."""
        return self.links.of(trace_id) if self.links else None

    def config_of(self, score: Score | CurrentScore) -> Mapping[str, Any] | None:
        """Return the config an evaluation was made by; None where the source has no metric of that config now."""
        version, config_hash, config = self.configs.get(score.metric, ("", "", None))
        return config if (version, config_hash) == (score.metric_version, score.config_hash) else None


def configured_sources() -> Mapping[str, Configured]:
    """Return the sources configured on this machine by name; it is noted where a `defs.yaml` is wrong."""
    from stepacc_dagster.definitions import defs_folder, read_sources  # noqa: PLC0415 (loads Dagster)

    found, known = read_sources(defs_folder()), {}
    problems = [refused.error for refused in found.refused]
    for source in found.sources:
        try:
            known[source.name] = Configured.of(source)
        except StepaccError as error:  # of a metric's package
            problems.append(error)
    for problem in problems:
        note(f"The store and present config of a source are left out: {problem}")
    return known
