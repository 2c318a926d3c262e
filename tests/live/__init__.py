"""Tests against live servers of other people's trace stores; `make test-live` runs them and nothing else does."""
