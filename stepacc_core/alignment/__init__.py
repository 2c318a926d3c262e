"""Aligning expected with observed steps."""
