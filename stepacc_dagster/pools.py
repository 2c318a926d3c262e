"""Concurrency pools: how many scoring steps of a metric run at once, over all sources and machines."""

import dagster as dg
from sqlalchemy.exc import IntegrityError

from stepacc_core.metrics import Manifest


def pool_of(manifest: Manifest) -> str:
    """Return the pool of a metric; all its versions share one."""
    return f"stepacc_{manifest.identifier}"


def ensure_pool_limit(instance: dg.DagsterInstance, manifest: Manifest) -> None:
    """Give the pool the manifest's limit, unless somebody set one: a user's own limit is kept.

    An instance whose storage has no pools (an in-memory one) is left as it is. Safe from several processes at once.
    """
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits or _has_limit(instance, pool_of(manifest)):
        return
    try:
        storage.set_concurrency_slots(pool_of(manifest), manifest.execution.max_concurrency)
    except IntegrityError:
        # Dagster looks and then inserts; whoever else set the limit between the two has the last word.
        if not _has_limit(instance, pool_of(manifest)):
            raise


def _has_limit(instance: dg.DagsterInstance, pool: str) -> bool:
    return any(limit.name == pool and not limit.from_default for limit in instance.event_log_storage.get_pool_limits())
