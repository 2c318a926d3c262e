"""A gate as a `defs.yaml` has it."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import dagster as dg

from stepacc_core.errors import ConfigError
from stepacc_dagster.component_settings import described
from stepacc_dagster.gate_settings import GateSettings


class GateModel(dg.Model, dg.Resolvable):
    """What the scores of a metric must meet, told by an asset check."""

    metric: Annotated[
        str | None,
        described(
            "Name of the metric, or of a member of its family; the only one where left out.", "agent.step_accuracy"
        ),
    ] = None
    partition_type: Annotated[
        Literal["trace", "session"] | None, described("What is judged; traces where there are both.", "session")
    ] = None
    newest: Annotated[int | None, described("Only the newest windows with anything in them, so many.", 7)] = None
    min_mean: Annotated[float | None, described("Least mean of the scores.", 0.9)] = None
    min_coverage: Annotated[float | None, described("Least share of what is known that has a score.", 0.95)] = None
    min_scored: Annotated[int, described("Least number of scores.", 20)] = 1
    no_forbidden: Annotated[bool, described("No step that a reference forbids may have run.", True)] = False  # noqa: FBT003
    baseline: Annotated[
        str | None,
        described("No worse than the baseline of this name beyond noise (`stepacc gate baseline set`).", "good"),
    ] = None
    margin: Annotated[float, described("By how much the mean may fall below the baseline.", 0.02)] = 0.0
    alpha: Annotated[float, described("Chance of failing the baseline where nothing fell.", 0.05)] = 0.05
    all_tasks: Annotated[bool, described("Every task of the baseline must have a score now.", True)] = False  # noqa: FBT003
    shared_references: Annotated[
        bool,
        described("Compare only what has the expectation that it had in the baseline.", True),  # noqa: FBT003
    ] = False
    blocking: Annotated[
        bool,
        described("What lies downstream of the scores is not made where the gate fails.", True),  # noqa: FBT003
    ] = False


def gate_settings(models: Iterable[GateModel]) -> Iterator[GateSettings]:
    """Return the settings of gates.

    Raises:
        ConfigError: a gate is refused; its setting is named with its place in the list.
    """
    for place, model in enumerate(models):
        try:
            yield GateSettings(**model.model_dump())
        except ConfigError as error:
            raise ConfigError(error.message, ".".join(filter(None, (f"gates.{place}", error.setting)))) from None
