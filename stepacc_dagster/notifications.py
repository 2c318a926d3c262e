"""Telling somebody that a run of a source failed."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import dagster as dg

from stepacc_core.errors import ConfigError
from stepacc_dagster.automation import RANGE_END, RANGE_START
from stepacc_dagster.catalog import SourceKeys, score_op
from stepacc_dagster.evaluators import Evaluator
from stepacc_dagster.sources import Source
from stepacc_dagster.windows import spanned

TOLD_WITHIN = 20.0
"""Seconds that a target gets for a failed run; Dagster ends a look of a sensor after 60."""


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run of a source that failed.

    Attributes:
        source: whose run it was.
        metric: name of its metric; of several those whose step failed, or all it had, with a comma between.
        metric_version: version of its metric, or versions as above.
        run_id: the run in Dagster.
        first: its first partition, and `last` its last; None where it had none.
        last: see `first`.
        partitions: sentence by partition, for those that failed by themselves.
        error: the run's failure in one sentence.
    """

    source: str
    metric: str
    metric_version: str
    run_id: str
    first: str | None
    last: str | None
    partitions: Mapping[str, str]
    error: str

    def __str__(self) -> str:
        """Return it as one sentence for people."""
        over = f" over {spanned([self.first, self.last])}" if self.first and self.last else ""
        return (
            f"Run {self.run_id} of {self.metric} {self.metric_version} for `{self.source}`{over} failed: {self.error}"
        )


Target = Callable[[FailedRun], object]
"""What is called with each failed run."""


def log_failure(failed: FailedRun) -> None:
    """Write a failed run to the log `stepacc`; the target where a source names none."""
    logging.getLogger("stepacc").error("%s", failed)


def target_of(source: Source) -> Target:
    """Return the function that a source's `on_failure` names.

    Raises:
        ConfigError: it names no function that can be imported.
    """
    if source.on_failure is None:
        return log_failure
    module, _, name = source.on_failure.partition(":")
    try:
        target: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        msg = (
            f"on_failure of source `{source.name}` is {source.on_failure!r}, which cannot be imported ({error}); name "
            "a function of one argument as `package.module:function`."
        )
        raise ConfigError(msg, "on_failure") from None
    if not callable(target):
        msg = f"on_failure of source `{source.name}` is {source.on_failure!r}, which is no function; name one."
        raise ConfigError(msg, "on_failure")
    return target  # type: ignore[no-any-return]


def told_in_time(target: Target, failed: FailedRun) -> bool:
    """Call a target, and return whether it came back in time; what it raises is raised.

    It is called in a thread of its own, which nobody can end: one that hangs goes on for as long as the process, but
    keeps none of the few threads by which a code location serves all its sensors.
    """
    raised: list[BaseException] = []

    def call() -> None:
        try:
            target(failed)
        except BaseException as error:  # noqa: BLE001 (handed to the sensor, whatever it is)
            raised.append(error)

    thread = threading.Thread(target=call, name=f"on_failure {failed.run_id}", daemon=True)
    thread.start()
    thread.join(TOLD_WITHIN)
    for error in raised:
        raise error
    return not thread.is_alive()


def build_failure_sensor(source: Source, evaluators: Sequence[Evaluator]) -> dg.SensorDefinition:
    """Build the sensor that hands each failed run of a source to its target."""
    target = target_of(source)
    own = set(SourceKeys(source, evaluators).made)

    @dg.run_failure_sensor(
        name=f"{source.name}_failures",
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Tells of each failed run of this source, whoever started it; `on_failure` names who is told.",
    )
    def failures(context: dg.RunFailureSensorContext) -> list[dg.RunRequest] | None:
        run = context.dagster_run
        if run.tags.get("stepacc/source") != source.name and own.isdisjoint(run.asset_selection or ()):
            # No SkipReason: where a run of the source was told of in the same look, Dagster takes the two for an
            # error, forgets how far it came, and would tell of that run at every look from then on.
            return []
        failed = _failed_run(context, source, evaluators)
        if not told_in_time(target, failed):
            context.log.error(
                "%s did not come back within %.0f s, and is left: %s", source.on_failure, TOLD_WITHIN, failed
            )
        return None

    return failures


def _failed_run(context: dg.RunFailureSensorContext, source: Source, evaluators: Sequence[Evaluator]) -> FailedRun:
    run = context.dagster_run
    single = run.tags.get("dagster/partition")
    partitions: dict[str, str] = {}
    error = context.failure_event.message or "no reason given"
    failed = list(context.get_step_failure_events())
    steps = {event.step_key for event in failed}
    asked = run.tags.get("stepacc/metric", "").split(",")
    manifests = [evaluator.metric.manifest for evaluator in evaluators]
    manifests = [manifest for manifest in manifests if manifest.name in asked] or manifests
    manifests = [manifest for manifest in manifests if score_op(source, manifest) in steps] or manifests
    for event in failed:
        data = event.step_failure_data
        told = data.user_failure_data
        error = (told.description if told else data.error and data.error.message) or error
        listed = told.metadata.get("failed_partitions") if told else None
        partitions |= dict(listed.value) if isinstance(listed, dg.JsonMetadataValue) else {}  # type: ignore[arg-type]
    return FailedRun(
        source=source.name,
        metric=",".join(manifest.name for manifest in manifests),
        metric_version=",".join(manifest.version for manifest in manifests),
        run_id=run.run_id,
        first=run.tags.get(RANGE_START, single),
        last=run.tags.get(RANGE_END, single),
        partitions=partitions,
        error=" ".join(error.split()),
    )
