"""What of a store's changes is not noticed, in words: each store tells what is new by a mark of its own."""

from stepacc_dagster.stores.settings import (
    LangfuseV2Settings,
    MlflowSettings,
    OtelSpansSettings,
    PhoenixSettings,
    StoreSettings,
)


def unnoticed(settings: StoreSettings) -> str:
    """Return what changes of a store are not noticed by those who follow it, as the end of a sentence."""
    match settings:
        case OtelSpansSettings():
            return "deleted spans"
        case PhoenixSettings():
            return (
                f"deleted traces, and spans of a transaction that stays open while more than {settings.reread_ids:,} "
                "others arrive"
            )
        case MlflowSettings():
            return f"traces more than {_days(settings.look_back_days)} older than the newest"
        case LangfuseV2Settings():
            return (
                f"rows created more than {_days(settings.look_back_days)} before the newest, and rows that show more "
                f"than {settings.reread_seconds:,} s after their updated_at"
            )
        case _ if settings.columns.arrival is None:
            return "all, since columns.arrival names no column that tells what is new"
        case _:
            return (
                f"deleted rows, rows that are changed without a new {settings.columns.arrival}, and rows that show "
                f"more than {settings.reread_ids:,} numbers, or {settings.reread_seconds:,} s, after theirs"
            )


def _days(count: int) -> str:
    return "1 day" if count == 1 else f"{count} days"
