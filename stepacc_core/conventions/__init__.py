"""Trace conventions: from raw spans to canonical ones."""
