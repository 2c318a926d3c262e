"""Benchmarks: ratios measured in one run, never pass or fail."""
