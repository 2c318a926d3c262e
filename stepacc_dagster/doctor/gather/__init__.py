"""Gathering the facts of an examination; nothing is changed anywhere."""
