"""The gates of a source as asset checks on its scores: the same decision as that of `stepacc gate`.

A gate is a step of its own, after the scoring: it reads the current scores in the database, not what a run has just
made, and can be run by itself.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from stepacc_core.comparison.choosing import Wanted
from stepacc_core.comparison.gate import Decision
from stepacc_core.errors import ConfigError, StepaccError
from stepacc_core.metrics import Manifest
from stepacc_dagster.catalog import SourceKeys
from stepacc_dagster.errors import DatabaseError, SchemaError
from stepacc_dagster.evaluators import Evaluator, evaluator_of
from stepacc_dagster.gate_report import document
from stepacc_dagster.gate_settings import GateSettings
from stepacc_dagster.gating import find_selection, judge
from stepacc_dagster.resources import StepaccDatabase, resource_key
from stepacc_dagster.sources import Source


def build_gates(source: Source, evaluators: Sequence[Evaluator]) -> list[dg.AssetChecksDefinition]:
    """Build an asset check for each gate of a source.

    Raises:
        ConfigError: a gate names a metric that the source is not scored by, none where there are several, or two gates
            are of one metric.
    """
    keys = SourceKeys(source, evaluators)
    checks: list[dg.AssetChecksDefinition] = []
    seen: set[dg.AssetCheckKey] = set()
    for place, (row, evaluator, settings) in enumerate(_gates(source, evaluators)):
        check = _build_gate(source, keys, evaluator, row, settings)
        if not seen.isdisjoint(check.check_keys):
            msg = f"Source `{source.name}` has two gates for `{row}`; put what they ask into one."
            raise ConfigError(msg, f"gates.{place}.metric")
        seen |= set(check.check_keys)
        checks.append(check)
    return checks


def gate_name(row: str, manifest: Manifest) -> str:
    """Return the name of the check: `gate`, and for a member that is not its family's headline that member's name."""
    return "gate" if row in (manifest.name, manifest.headline) else f"gate_{row.rpartition('.')[2]}"


def _gates(source: Source, evaluators: Sequence[Evaluator]) -> Iterator[tuple[str, Evaluator, GateSettings]]:
    """Yield each gate with the name of the row it judges and the metric that writes it."""
    for place, settings in enumerate(source.gates):
        try:
            name = settings.metric
            chosen = next((e for e in evaluators if name == e.name or name in e.row_names), None)
            evaluator = chosen or (
                evaluators[0] if name is None and len(evaluators) == 1 else evaluator_of(source, name)
            )
        except ConfigError as error:
            raise ConfigError(error.message, f"gates.{place}.metric") from None
        row = evaluator.headline if settings.metric in (None, evaluator.name) else settings.metric
        yield str(row), evaluator, settings


def _build_gate(
    source: Source, keys: SourceKeys, evaluator: Evaluator, row: str, settings: GateSettings
) -> dg.AssetChecksDefinition:
    manifest = evaluator.metric.manifest
    wanted = Wanted(source.name, row, manifest.version, evaluator.config_hash, _judged_type(source, settings))

    @dg.asset_check(
        asset=keys.of(evaluator.name).scores,
        name=gate_name(row, manifest),
        blocking=settings.blocking,
        required_resource_keys={resource_key(source)},
        description=f"The current scores are good enough: {_asked(settings)}. It speaks of {_windows(settings)}, "
        "whichever were scored last.",
    )
    def gate(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        database: StepaccDatabase = getattr(context.resources, resource_key(source))
        with database.engine() as engine, engine.connect() as connection:
            try:
                selection = find_selection(connection, wanted, settings.newest).selection
                decision = judge(connection, selection, settings.criteria, settings.baseline)
            except (DatabaseError, SchemaError):
                raise
            except StepaccError as error:
                return dg.AssetCheckResult(passed=False, description=f"The gate cannot be decided: {error}")
        return _result(decision)

    return gate


def _result(decision: Decision) -> dg.AssetCheckResult:
    counts = {"scored": decision.counts.scored, "without_score": decision.counts.total - decision.counts.scored}
    shown: dict[str, Any] = {"mean": decision.counts.mean, "coverage": decision.coverage}
    against = decision.against
    if against is not None:
        shown |= {"change_since_baseline": against.mean_change, "p": against.p}
    return dg.AssetCheckResult(
        passed=decision.passed,
        description=decision.reason,
        metadata={
            **counts,
            **{name: round(value, 4) for name, value in shown.items() if value is not None},
            "decision": dg.MetadataValue.json(document(decision)),
        },
    )


def _judged_type(source: Source, settings: GateSettings) -> Any:
    return settings.partition_type or ("trace" if "trace" in source.partition_types else "session")


def _windows(settings: GateSettings) -> str:
    return "all windows" if settings.newest is None else f"the newest {settings.newest} windows"


def _asked(settings: GateSettings) -> str:
    parts = (
        None if settings.min_mean is None else f"their mean is at least {settings.min_mean:g}",
        None if settings.min_coverage is None else f"their coverage is at least {settings.min_coverage:g}",
        None if settings.min_scored == 1 else f"there are at least {settings.min_scored}",
        "no forbidden step ran" if settings.no_forbidden else None,
        None if settings.baseline is None else f"they are no worse than baseline `{settings.baseline}` beyond noise",
    )
    return ", ".join(part for part in parts if part)
