"""Model Context Protocol: client and server spans with `mcp.method.name`."""

from stepacc_core.conventions.fields import Fields
from stepacc_core.conventions.naming import without_affixes
from stepacc_core.conventions.values import text
from stepacc_core.model import RawSpan

CALL = "tools/call"

MARKS = frozenset({"mcp.method.name"})
"""Attributes of this convention; a span with any of them is read by it."""


def read(span: RawSpan) -> Fields:
    """Read a call of a tool as TOOL and every other message as CHAIN.

    Where the tool's name is no attribute it is the part of the span's name that the convention reserves for it.
    """
    if text(span.attributes, "mcp.method.name") != CALL:
        return Fields(kind="CHAIN")
    return Fields(
        kind="TOOL",
        tool_name=text(span.attributes, "gen_ai.tool.name", "mcp.tool.name") or without_affixes(span.name),
    )
