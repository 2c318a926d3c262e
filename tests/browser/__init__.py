"""The demo in the Dagster UI, looked at with a real browser."""
