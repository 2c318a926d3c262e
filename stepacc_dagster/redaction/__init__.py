"""Redaction at the doors by which traces and annotations come in: its key, and the redactor of a source."""
