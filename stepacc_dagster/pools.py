"""Concurrency pools: how many scoring steps of a metric run at once, over all sources and machines."""

import dagster as dg

from stepacc_core.metrics import Manifest


def pool_of(manifest: Manifest) -> str:
    """Return the pool of a metric; all its versions share one."""
    return f"stepacc_{manifest.identifier}"


def ensure_pool_limit(instance: dg.DagsterInstance, manifest: Manifest) -> None:
    """Give the pool the manifest's limit, unless somebody set one: a user's own limit is kept.

    An instance whose storage has no pools (an in-memory one) is left as it is.
    """
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return
    pool = pool_of(manifest)
    explicit = {limit.name for limit in storage.get_pool_limits() if not limit.from_default}
    if pool not in explicit:
        storage.set_concurrency_slots(pool, manifest.execution.max_concurrency)
