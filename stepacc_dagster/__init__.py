"""The Dagster plugin of stepacc."""
