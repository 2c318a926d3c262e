"""What became of one run of this process."""

from dataclasses import dataclass

import dagster as dg


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """One Dagster run over a stretch of partitions."""

    run_id: str
    first: str
    last: str
    partitions: int
    success: bool
    error: str | None


def first_error(result: dg.ExecuteInProcessResult) -> str | None:
    """Return what the first failure of a run says; None where nothing failed."""
    for event in result.all_events:
        if event.is_failure and event.event_specific_data is not None:
            data = event.event_specific_data
            failure = getattr(data, "user_failure_data", None)
            if failure is not None and failure.description:
                return str(failure.description)
            error = getattr(data, "error", None)
            if error is not None:
                return str((error.cause or error).message).strip()
    return None
