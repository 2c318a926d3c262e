"""Traces as other tools export them, as JSON: LangSmith, Langfuse and ATIF.

Each format is a module with `recognises` and `read`; `formats.TABLE` lists them, and `formats.read_trace_lines` tells
by content which one a file has. What they make is raw spans in attributes that `conventions/` reads.
"""
