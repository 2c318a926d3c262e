"""A metric that the tests can hold up in the middle of a partition, in whatever process it runs.

It scores as `agent.step_accuracy` does. A file named like a trace or session in the folder `GATES` is a gate: whoever
comes to score that occurrence writes its process id beside the file, and goes on once the file is gone.
"""

import os
import time
from pathlib import Path

from stepacc_core import CanonicalPartition, Result
from stepacc_core.metrics import Manifest
from stepacc_core.metrics.step_accuracy import Config, StepAccuracy
from stepacc_core.metrics.step_accuracy_config import StepAccuracyConfig

GATES = "STEPACC_TEST_GATES"
"""The environment variable that names the folder of the gates."""
PATIENT, HASTY = "acme.patient_accuracy", "acme.hasty_accuracy"
"""Two metrics that differ in their time limits alone."""
_LOOK = 0.02
_LIMITS = {PATIENT: 600, HASTY: 3}


class Gated(StepAccuracy):
    """The scorer of both."""

    def __init__(self, name: str, maker: str) -> None:
        super().__init__("manifests/agent.step_accuracy-2.0.0.yaml", StepAccuracyConfig)
        pattern = super().manifest.model_dump(mode="json")
        limits = {"max_concurrency": 2, "timeout_seconds": _LIMITS[name]}
        own = {"name": name, "entrypoint": f"{__name__}.{maker}", "execution": {**pattern["execution"], **limits}}
        self._own = Manifest.model_validate({**pattern, **own})

    @property
    def manifest(self) -> Manifest:
        """The facts about the metric."""
        return self._own

    def score(self, partition: CanonicalPartition, config: Config | None = None) -> Result:
        """Score an occurrence, once its gate is gone."""
        gate = Path(os.environ[GATES]) / partition.partition_id
        if gate.exists():
            gate.with_name(f"{gate.name}.pid").write_text(f"{os.getpid()}\n")
            while gate.exists():
                time.sleep(_LOOK)
        return super().score(partition, config)


def patient() -> Gated:
    """Return the metric that may take its time."""
    return Gated(PATIENT, "patient")


def hasty() -> Gated:
    """Return the metric that has three seconds for a partition."""
    return Gated(HASTY, "hasty")
