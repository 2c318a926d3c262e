"""What people said in a trace store of the steps a trace should take becomes annotations."""

import json
from typing import Any

import pytest
import sqlalchemy as sa

from stepacc_dagster.storage.annotations import AnnotationEntry, add_annotations
from stepacc_dagster.stores.errors import StoreSchemaError
from stepacc_dagster.stores.settings import LangfuseV2Settings, MlflowSettings, PhoenixSettings, StoreSettings
from tests.integration.store_access import SOURCE, load, opened, run

ANNOTATED = "tr-546f363e11fc3e03621babbb7d61c8d9"
OTHER = "tr-94aa67e330be2bbcc0d612b85d487db6"


def expectations(engine: sa.Engine, settings: StoreSettings) -> list[AnnotationEntry]:
    """Return what a store holds."""
    with opened(engine, settings) as reader:
        return list(reader.expectations())


def assess(engine: sa.Engine, ident: str, trace_id: str, value: str, **changed: Any) -> None:
    """Say in MLflow what a trace should do."""
    values = {"name": "expected_steps", "kind": "expectation", "at": 1796035097900, "valid": True} | changed
    run(
        engine,
        "INSERT INTO assessments VALUES (:ident, :trace, :name, :kind, :value, :at, 'ana', 'a reason', :valid)",
        ident=ident,
        trace=trace_id,
        value=value,
        **values,
    )


def example(engine: sa.Engine, ident: int, span: int | None, output: Any, metadata: Any = None, **changed: Any) -> None:
    """Make an example of a Phoenix dataset from a span, or revise it."""
    run(engine, "INSERT INTO datasets VALUES (1, 'refunds') ON CONFLICT DO NOTHING")
    run(
        engine,
        "INSERT INTO dataset_examples VALUES (:ident, 1, CAST(:span AS int)) ON CONFLICT DO NOTHING",
        ident=ident,
        span=span,
    )
    run(
        engine,
        "INSERT INTO dataset_example_revisions (dataset_example_id, output, metadata, revision_kind) "
        "VALUES (:ident, :output, :metadata, :kind)",
        ident=ident,
        output=json.dumps(output),
        metadata=json.dumps(metadata or {}),
        kind=changed.get("kind", "CREATE"),
    )


def test_assessments_of_mlflow_named_expected_steps(migrated_engine: sa.Engine) -> None:
    load(migrated_engine, "mlflow")

    [entry] = expectations(migrated_engine, MlflowSettings())

    assert (entry.source, entry.target_type, entry.target_id) == (SOURCE, "trace", ANNOTATED)
    assert entry.value == ["issue_refund"]
    with migrated_engine.begin() as connection:
        [added] = add_annotations(connection, [entry])
        assert add_annotations(connection, expectations(migrated_engine, MlflowSettings()))[0].id == added.id


def test_of_several_assessments_the_newest_valid_one_counts(engine: sa.Engine) -> None:
    load(engine, "mlflow")
    assess(engine, "a-newer", ANNOTATED, '["lookup_order"]')
    assess(engine, "a-withdrawn", ANNOTATED, '["nothing"]', at=1796035098000, valid=False)
    assess(engine, "a-feedback", ANNOTATED, '["nothing"]', at=1796035098000, kind="feedback")
    assess(engine, "a-another", ANNOTATED, '["nothing"]', at=1796035098000, name="expected_response")
    assess(engine, "a-null", OTHER, "null")

    [entry] = expectations(engine, MlflowSettings())

    assert (entry.value, entry.author, entry.note) == (["lookup_order"], "ana", "a reason")
    assert entry.origin == "MLflow assessment a-newer"


def test_assessments_of_other_experiments_are_left_out(engine: sa.Engine) -> None:
    load(engine, "mlflow")

    assert expectations(engine, MlflowSettings(experiments=("otlp-llm",))) == []
    assert len(expectations(engine, MlflowSettings(experiments=("manual-spans",)))) == 1


@pytest.mark.parametrize("holder", ["output", "metadata"])
def test_examples_of_phoenix_that_hold_expected_steps(engine: sa.Engine, holder: str) -> None:
    load(engine, "phoenix")
    held = {"expected_steps": ["lookup_order", ["a", "b"]]}
    example(engine, 7, 2, held if holder == "output" else {"answer": "x"}, held if holder == "metadata" else {})

    [entry] = expectations(engine, PhoenixSettings())

    assert (entry.target_type, entry.target_id) == ("trace", "0125f6bd1fe33108c3c3896afce2c896")
    assert entry.value == ["lookup_order", ["a", "b"]]
    assert entry.origin == "Phoenix dataset 'refunds', example 7"


def test_of_several_examples_of_a_trace_the_one_revised_last_counts(engine: sa.Engine) -> None:
    load(engine, "phoenix")
    example(engine, 1, 2, {"expected_steps": ["first"]})
    example(engine, 2, 14, {"expected_steps": ["second"]})
    assert [entry.value for entry in expectations(engine, PhoenixSettings())] == [["second"]]

    example(engine, 1, 2, {"expected_steps": ["third"]}, kind="PATCH")
    assert [entry.value for entry in expectations(engine, PhoenixSettings())] == [["third"]]

    example(engine, 1, 2, {"expected_steps": ["third"]}, kind="DELETE")
    assert [entry.value for entry in expectations(engine, PhoenixSettings())] == [["second"]]


def test_examples_that_say_nothing_of_a_trace_are_left_out(engine: sa.Engine) -> None:
    load(engine, "phoenix")
    example(engine, 1, 2, {"expected_steps": None})
    example(engine, 2, 15, ["expected_steps"])
    example(engine, 3, None, {"expected_steps": ["a"]})
    example(engine, 4, 25, {"expected_steps": ["a"]})

    assert expectations(engine, PhoenixSettings(projects=("langgraph",))) == []
    assert [entry.value for entry in expectations(engine, PhoenixSettings())] == [["a"]]


def test_langfuse_has_none(engine: sa.Engine) -> None:
    load(engine, "langfuse_v2")

    assert expectations(engine, LangfuseV2Settings()) == []


def test_a_store_without_the_tables_says_so_only_when_asked_for_expectations(engine: sa.Engine) -> None:
    load(engine, "phoenix")
    run(engine, "DROP TABLE dataset_example_revisions")

    with (
        opened(engine, PhoenixSettings()) as reader,
        pytest.raises(StoreSchemaError, match=r"no table public\.dataset_example_revisions"),
    ):
        list(reader.expectations())
