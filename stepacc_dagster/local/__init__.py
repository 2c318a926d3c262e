"""The local PostgreSQL server and Dagster instance."""
