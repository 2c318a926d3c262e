"""Scores as files for other tools: which rows, their columns, and the formats they are written in."""
