"""What a Dagster instance knows of a sensor or schedule."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True)
class Ticker:
    """A sensor or a schedule, as an instance has it.

    Attributes:
        name: of the sensor or schedule.
        chosen: what somebody chose in the UI; None: whatever its definition says.
        ticked_at: its last finished tick; None: it never ticked.
        failure: why that failed; None where it did not.
    """

    name: str
    chosen: Literal["on", "off"] | None
    ticked_at: datetime | None
    failure: str | None
