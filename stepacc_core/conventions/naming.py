"""Names and ids as producers write them, made bare."""

import re

_MCP_PREFIX = re.compile(r"mcp__[^_].*?__(?=.)", re.DOTALL)

TOOL_PREFIXES = (
    "execute_tool ",
    "running tool: ",
    "MCP send tools/call ",
    "MCP Client Tool Call: ",
    "tools/call ",
)
TOOL_SUFFIXES = (".tool", ".run")

NOT_AN_ID = frozenset({"", "unknown", "<not specified>", "none", "null"})
"""What producers write, lower case, where a call has no id."""

UNNAMED = "(unnamed)"
"""The name of a call that was recorded without any."""


def bare(name: str) -> str:
    """Return the tool's own name, without the `mcp__server__` that some clients put before it."""
    found = _MCP_PREFIX.match(name)
    return name[found.end() :] if found else name


def without_affixes(span_name: str) -> str:
    """Return what is left of a tool span's name without the words that instrumentations add to the tool's name."""
    name = span_name.strip()
    for prefix in TOOL_PREFIXES:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    for suffix in TOOL_SUFFIXES:
        if name.endswith(suffix) and name != suffix:
            name = name.removesuffix(suffix)
            break
    return bare(name.strip()) or span_name or UNNAMED


def real_id(call_id: str | None) -> str | None:
    """Return the id, or None for the words that mean there is none."""
    return None if call_id is None or call_id.strip().lower() in NOT_AN_ID else call_id
