"""What the tests of erasures do: search whole databases for a text, and count what is stored of a trace."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from stepacc_core.model import RawEvent, RawSpan
from tests.integration.evaluation_samples import agent_trace, tool_span

_TABLES = sa.text("""
    SELECT format('%I.%I', nspname, relname) FROM pg_class JOIN pg_namespace space ON space.oid = relnamespace
    WHERE nspname IN ('stepacc', 'dagster') AND relkind = 'r' ORDER BY 1
""")


def places(engine: sa.Engine, text: str) -> dict[str, int]:
    """Return in which columns of which tables of the schemas `stepacc` and `dagster` a text is, and in how many rows.

    Every column is searched as text, whatever its type.
    """
    found: dict[str, int] = {}
    with engine.connect() as connection:
        for table in connection.scalars(_TABLES).all():
            query = f"""
                SELECT field.key, count(*) FROM {table} each CROSS JOIN LATERAL jsonb_each_text(to_jsonb(each)) field
                WHERE strpos(field.value, :text) > 0 GROUP BY field.key
            """  # noqa: S608 (a name from the catalogue)
            for column, rows in connection.execute(sa.text(query), {"text": text}):
                found[f"{table}.{column}"] = rows
    return found


def named(spans: list[RawSpan], **attributes: Any) -> list[RawSpan]:
    """Return the spans of a trace with more attributes on its root; `__` stands for a dot."""
    more = {name.replace("__", "."): value for name, value in attributes.items()}
    root, *others = spans
    return [replace(root, attributes={**root.attributes, **more}), *others]


def person_trace(trace_id: str, key: str, user: str, *tools: str, **identity: Any) -> list[RawSpan]:
    """Return the spans of an agent's trace whose root names a user."""
    return named(agent_trace(trace_id, key, *tools, **identity), user__id=user)


def telling_trace(trace_id: str, key: str, secret: str, *, task: str, session: str) -> list[RawSpan]:
    """Return a trace that has a text in every place in which a span can carry one."""
    root, search, *_ = agent_trace(trace_id, key, "search", "search", task=task, session=session)
    start = (root.start_time_unix_nano or 0) + 5_000_000_000
    completion = [{"role": "assistant", "parts": [{"type": "tool_call", "name": f"call {secret}", "arguments": {}}]}]
    model: Mapping[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": completion,
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": f"prompt {secret}"}]}],
    }
    nameless = replace(
        tool_span(trace_id, "nameless", "x", start),
        name=f"name {secret}",
        attributes={"openinference.span.kind": "TOOL"},
    )
    return [
        replace(root, status="ERROR", status_message=f"status {secret}", resource={"host": f"resource {secret}"}),
        replace(
            search,
            attributes={
                **search.attributes,
                "gen_ai.tool.call.arguments": {"q": f"argument {secret}"},
                "gen_ai.tool.call.result": f"output {secret}",
            },
            events=(RawEvent(f"event {secret}", start, {"log": f"event {secret}"}),),
            scope_name=f"scope {secret}",
            scope_version=f"version {secret}",
        ),
        replace(tool_span(trace_id, "named", f"tool {secret}", start + 1), name="a tool"),
        replace(
            tool_span(trace_id, "agent", "x", start + 2),
            attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"agent {secret}"},
        ),
        replace(tool_span(trace_id, "model", "x", start + 3), name="chat", attributes=model),
        nameless,
    ]
