"""`stepacc diff`."""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from stepacc_core.comparison.choosing import Wanted
from stepacc_core.comparison.diff import Changed, Diff, OneSided, diff, refuse_other_version
from stepacc_core.comparison.observations import Selection
from stepacc_core.comparison.pairing import PairedBy
from stepacc_core.errors import ConfigError
from stepacc_core.model import PartitionType
from stepacc_core.picture import has_alignment, picture
from stepacc_core.shown import shown
from stepacc_dagster.cli.diff_text import diff_text
from stepacc_dagster.cli.output import emit_json, json_option, out
from stepacc_dagster.cli.selecting import chosen, refusals, selection_options
from stepacc_dagster.cli.sources import source_or_only
from stepacc_dagster.storage.opening import open_storage
from stepacc_dagster.storage.paired import metadata_of, observations

_SIDE = {
    "source": "source",
    "version": "metric_version",
    "config": "config_hash",
    "from": "first",
    "to": "last",
}
"""What a side may name, and the field of `Wanted` it sets."""


@click.command("diff")
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@selection_options
@click.option(
    "--pair",
    "by",
    type=click.Choice(["occurrence", "task"]),
    help="Pair each trace or session with itself, or the runs of a task; by what differs where left out.",
)
@click.option("--pass-at", "passes_at", type=click.FloatRange(0, 1), default=1.0, show_default=True, metavar="SCORE",
              help="Score from which one passes.")  # fmt: skip
@click.option("--limit", type=click.IntRange(0), default=5, show_default=True, help="Pictures of how many pairs.")
@json_option
def diff_(  # noqa: PLR0913, PLR0917 (a command's options)
    before: str,
    after: str,
    source: str | None,
    metric: str | None,
    metric_version: str | None,
    config_hash: str | None,
    partition_type: PartitionType | None,
    first: str,
    last: str,
    by: PairedBy | None,
    passes_at: float,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Compare two metric versions, configs, time ranges or sources: how far, and which traces and why.

    BEFORE and AFTER say in what the sides differ, as KEY=VALUE with commas between; the options hold for both.
    The keys are version, config, from, to and source.

    \b
    stepacc diff version=1.0.0 version=2.0.0
    stepacc diff config=1f0c config=9ab2 --metric-version 2.0.0
    stepacc diff from=2026-11-01,to=2026-11-07 from=2026-11-08,to=2026-11-14
    stepacc diff source=shop source=shop_next --json

    Versions and configs are paired trace by trace, time ranges and sources task by task. What was measured against
    different expectations is told apart. Exit code 0: compared; 1: nothing pairs; 2: the sides cannot be compared.
    """  # noqa: D301 (click reads the backspace)
    with refusals():
        sides = [_parsed(side) for side in (before, after)]
        named = [side.get("source") or source for side in sides]
        if not all(named):
            only = source_or_only(None)
            named = [name or only for name in named]
        both = Wanted(source or "", metric, metric_version, config_hash, partition_type, first, last)
        wanted = [
            dataclasses.replace(both, **{**side, "source": name}) for side, name in zip(sides, named, strict=True)
        ]
        with open_storage() as engine, engine.connect() as connection:
            old, new = (chosen(connection, each, may_be_unscored=False).selection for each in wanted)
            if not any("metric_version" in side for side in sides):
                refuse_other_version(old, new)
            scores = observations(connection, old), observations(connection, new)
            found = diff(old, new, *scores, by=by, passes_at=passes_at)
            pictured = [side.score_id for each in found.changed[:limit] for side in (each.before, each.after)]
            metadata = metadata_of(connection, [ident for ident in pictured if ident is not None])
    if as_json:
        emit_json(_document(found, metadata))
    else:
        out().print(diff_text(found, metadata, limit))
    sys.exit(0 if found.pairing.pairs else 1)


def _parsed(side: str) -> dict[str, Any]:
    """Read what one side names.

    Raises:
        ConfigError: a part is no KEY=VALUE of the keys there are.
    """
    given: dict[str, Any] = {}
    for part in side.split(","):
        key, _, value = part.partition("=")
        field = _SIDE.get(key.strip())
        if field is None or not value.strip() or field in given:
            msg = (
                f"{shown(part)} does not say what a side is; write KEY=VALUE, each key once, with commas between. The "
                f"keys are {', '.join(_SIDE)}."
            )
            raise ConfigError(msg)
        given[field] = value.strip()
    return given


def _document(found: Diff, metadata: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "before": _side(found.before, dataclasses.asdict(found.before_counts)),
        "after": _side(found.after, dataclasses.asdict(found.after_counts)),
        "differs": found.differs,
        "paired_by": found.pairing.by,
        "pairs": len(found.pairing.pairs),
        "change": found.change and dataclasses.asdict(found.change),
        "rose": found.rose(),
        "fell": found.fell(),
        "mended": found.flipped("mended"),
        "broke": found.flipped("broke"),
        "other_revisions": found.pairing.other_revisions,
        "other_reference": {
            "pairs": len(found.pairing.other_reference),
            "change": found.other_change and dataclasses.asdict(found.other_change),
            "names": [pair.name for pair in found.pairing.other_reference],
        },
        "before_only": _alone(found.before_only),
        "after_only": _alone(found.after_only),
        "changed": [_changed(each, metadata) for each in found.changed],
    }


def _side(selection: Selection, counts: dict[str, Any]) -> dict[str, Any]:
    return {**selection.document(), **counts}


def _alone(alone: Sequence[OneSided]) -> list[dict[str, Any]]:
    return [
        {"id": each.scored.partition_id, "task": each.scored.task_id, "other_status": each.other_status}
        for each in alone
    ]


def _changed(each: Changed, metadata: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    before, after = each.pair.means
    said = [metadata.get(side.score_id or 0) for side in (each.before, each.after)]
    pictures = [str(picture(one)) if one and has_alignment(one) else None for one in said]
    return {
        "name": each.pair.name,
        "task": each.pair.task_id,
        "before": before,
        "after": after,
        "change": each.pair.change,
        "flip": each.flip,
        "causes": each.causes,
        "runs": {"before": len(each.pair.before), "after": len(each.pair.after)},
        "shown": {"before": each.before.partition_id, "after": each.after.partition_id},
        "pictures": {"before": pictures[0], "after": pictures[1]},
    }
