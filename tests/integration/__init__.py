"""Tests on real Postgres and real Dagster."""
