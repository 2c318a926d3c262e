"""A refused setting of a `defs.yaml`, told with its file and line."""

import re
from collections.abc import Sequence
from typing import Any

from dagster.components.resolved.errors import ResolutionException
from dagster_shared.yaml_utils.source_position import SourcePositionTree
from pydantic import ValidationError

from stepacc_core.errors import ConfigError, StepaccError, UnknownMetricError

_FIELD = re.compile(r"(?!(str|int|float)$)[a-z_]+|\d+")
"""A field's name or an index; the other parts of a place in pydantic's errors name types."""

_RESOLVED = re.compile(r".*:\d+ - attributes\.(?P<path>[\w.]+)$", re.MULTILINE)
"""How Dagster begins when it cannot resolve an attribute: file, line and path."""

Refusal = StepaccError | ValidationError | ResolutionException


def located(error: Refusal, document: SourcePositionTree) -> ConfigError:
    """Say which attribute of a component is refused, and where it is.

    Args:
        error: what Dagster, pydantic or stepacc refused.
        document: the positions of the YAML document that has the component.

    Returns:
        An error whose sentence begins with `file:line`, of the attribute, or of the nearest that there is.
    """
    path, said = _told(error)
    place, _ = document.lookup_closest_and_path(["attributes", *path], None)
    attribute = f", attribute `{'.'.join(map(str, path))}`" if path else ""
    return ConfigError(f"{place.filename}:{place.start.line}{attribute}: {said}", ".".join(map(str, path)) or None)


def _told(error: Refusal) -> tuple[Sequence[str | int], str]:
    """Return the path of the attribute, and a sentence."""
    if isinstance(error, ConfigError | UnknownMetricError):
        return _parts(error.setting), error.message
    if isinstance(error, StepaccError):
        return (), error.message
    outer: list[Any] = []
    invalid: BaseException | None = error
    if isinstance(error, ResolutionException):
        found = _RESOLVED.match(str(error))
        outer, invalid = _parts(found.group("path") if found else None), error.__context__
    if not isinstance(invalid, ValidationError):
        return outer, f"{' '.join(str(error).splitlines()[-1].split()).rstrip('.')}."
    telling = max(invalid.errors(), key=lambda part: len(part["loc"]))  # the alternative that fits furthest
    inner = [part for part in telling["loc"] if _FIELD.fullmatch(str(part))]
    return [*outer, *inner], f"{telling['msg']}; given {telling['input']!r}."


def _parts(setting: str | None) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in (setting or "").split(".") if part]
