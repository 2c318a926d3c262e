"""Tests of what `deploy/` says: executors, a pooler, roles and Airflow, over real servers."""
