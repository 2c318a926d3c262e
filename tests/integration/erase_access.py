"""What the tests of erasures do: search whole databases for a text, and count what is stored of a trace."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from stepacc_core.annotations import TargetType
from stepacc_core.model import PartitionType, RawEvent, RawSpan
from stepacc_dagster.evaluators import evaluator_of
from stepacc_dagster.ingest import ingest_window, observe
from stepacc_dagster.opening import opened_store
from stepacc_dagster.scoring import score_window
from stepacc_dagster.sources import MetricChoice
from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.storage.raw_spans import Landed, land_spans
from stepacc_dagster.windows import window_of
from tests.integration.evaluation_access import support_source
from tests.integration.evaluation_samples import SOURCE, agent_trace, tool_span

BOTH: dict[PartitionType, str] = {"trace": "fail", "session": "fail"}
NOTHING = {"raw_spans": 0, "spans": 0, "score_metadata": 0}

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


@dataclass(frozen=True)
class Desk:
    """A database of stepacc, worked on without Dagster."""

    engine: sa.Engine
    home: Path

    def land(self, *traces: Iterable[RawSpan], source: str = SOURCE) -> Landed:
        """Land the spans of traces."""
        with self.engine.begin() as connection:
            return land_spans(connection, source, [span for spans in traces for span in spans])

    def annotate(
        self, target_type: TargetType, target_id: str, value: Any, partition_type: PartitionType = "trace"
    ) -> None:
        """Say what a target should do, and why."""
        entry = AnnotationEntry(SOURCE, target_type, target_id, value, partition_type, note=f"note on {target_id}")
        with self.engine.begin() as connection:
            add_annotations(connection, [entry])

    def ingest(self, *keys: str, **settings: Any) -> None:
        """Ingest windows from the source's store."""
        source = support_source(**settings)
        with opened_store(source, self.engine) as store:
            for key in keys:
                ingest_window(self.engine, store, source, window_of(key, "daily"))

    def observe(self, **settings: Any) -> None:
        """Ask the source's store what changed and what it expects, as the sensor does."""
        source = support_source(**settings)
        with opened_store(source, self.engine) as store:
            observe(self.engine, store, source)

    def score(self, *keys: str, version: str | None = None, **settings: Any) -> None:
        """Score windows."""
        source = support_source(**{"partition_types": BOTH, "metric": MetricChoice(version=version), **settings})
        for key in keys:
            score_window(self.engine, source, evaluator_of(source), window_of(key, "daily"), "run")

    def evaluate(self, *keys: str, **settings: Any) -> None:
        """Ingest windows, then score them."""
        self.ingest(*keys, **{name: value for name, value in settings.items() if name != "version"})
        self.score(*keys, **settings)

    def rows(self, query: str, **parameters: Any) -> list[Any]:
        """Return the rows of a query."""
        with self.engine.connect() as connection:
            return list(connection.execute(sa.text(query), parameters))

    def one(self, query: str, **parameters: Any) -> Any:
        """Return the one value of a query."""
        [(value,)] = self.rows(query, **parameters)
        return value

    def current(self) -> dict[tuple[str, str, str], float | None]:
        """Return the current scores, by metric version, kind and id of the partition."""
        rows = self.rows("SELECT * FROM stepacc.current_scores")
        return {(row.metric_version, row.partition_type, row.partition_id): row.score for row in rows}

    def stored(self, trace_id: str) -> dict[str, int]:
        """Return how many raw and canonical spans a trace has, and how many rows of score metadata."""
        counts = {
            "raw_spans": "SELECT count(*) FROM stepacc.otel_spans WHERE trace_id = :id",
            "spans": "SELECT count(*) FROM stepacc.spans WHERE trace_id = :id",
            "score_metadata": """
                SELECT count(*) FROM stepacc.score_metadata JOIN stepacc.scores ON id = score_id
                WHERE partition_id = :id
            """,
        }
        return {name: self.one(query, id=trace_id) for name, query in counts.items()}

    def erased(self) -> list[str]:
        """Return the traces that are marked as erased, in order."""
        query = "SELECT trace_id FROM stepacc.traces WHERE erased_at IS NOT NULL ORDER BY source, trace_id"
        return [row.trace_id for row in self.rows(query)]

    def audit(self) -> list[Any]:
        """Return what is written down of erasures, oldest first."""
        return self.rows("SELECT * FROM stepacc.erasures ORDER BY id")

    def configure(self, name: str = SOURCE, **attributes: Any) -> None:
        """Write the `defs.yaml` of a source."""
        folder = self.home / "defs" / name
        folder.mkdir(parents=True)
        document = {
            "type": "stepacc_dagster.StepAccuracyComponent",
            "attributes": {"source": name, "start_date": "2025-11-01", **attributes},
        }
        (folder / "defs.yaml").write_text(json.dumps(document))
