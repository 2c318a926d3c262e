"""The Dagster plugin of stepacc.

`StepAccuracyComponent` gives a project one evaluated source per `defs.yaml`; `build_evaluation_definitions` is the
plain function under it. Names are loaded when they are first asked for, so that commands that read only files do not
wait for Dagster.
"""

from importlib import import_module
from typing import Any

from stepacc_core._version import __version__

_HOMES = {
    "AssetSettings": "stepacc_dagster.asset_settings",
    "MetricChoice": "stepacc_dagster.sources",
    "Source": "stepacc_dagster.sources",
    "StepAccuracyComponent": "stepacc_dagster.component",
    "StepaccDatabase": "stepacc_dagster.resources",
    "build_evaluation_assets": "stepacc_dagster.assets",
    "build_evaluation_definitions": "stepacc_dagster.component",
    "resource_key": "stepacc_dagster.resources",
}

__all__ = [
    "AssetSettings",
    "MetricChoice",
    "Source",
    "StepAccuracyComponent",
    "StepaccDatabase",
    "__version__",
    "build_evaluation_assets",
    "build_evaluation_definitions",
    "resource_key",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
