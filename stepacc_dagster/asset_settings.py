"""How the assets of a source fit into the catalog of a project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepacc_core.errors import ConfigError

if TYPE_CHECKING:
    import dagster as dg  # sources are read by commands that do not wait for Dagster


@dataclass(frozen=True, slots=True)
class AssetSettings:
    """What a project says of the assets of a source, all alike.

    What differs from asset to asset is for Dagster's own means: `post_processing` in a `defs.yaml`,
    `dagster.map_asset_specs` in Python.

    Args:
        key_prefix: parts of each key that come before the name of the source.
        group_name: group of the assets; the name of the source where None.
        owners: e-mail addresses, and teams as `team:evals`.
        tags: added to those that the assets have.
        automation_condition: of the assets that stepacc makes: the canonical traces, the scores and their metadata.

    Raises:
        ConfigError: the key prefix is one text instead of a list, or a part of it is empty.
    """

    key_prefix: Sequence[str] = ()
    group_name: str | None = None
    owners: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    automation_condition: "dg.AutomationCondition[Any] | None" = None

    def __post_init__(self) -> None:
        """Refuse a prefix of which no key can be made."""
        if isinstance(self.key_prefix, str) or not all(self.key_prefix):
            msg = f"key_prefix is {self.key_prefix!r}; list texts that are not empty, such as ['evals']."
            raise ConfigError(msg, "assets.key_prefix")
