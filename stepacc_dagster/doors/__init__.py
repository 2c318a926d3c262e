"""Doors by which traces come in that need more than the core: OTLP as protobuf, and over HTTP."""
