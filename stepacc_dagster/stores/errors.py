"""The errors of trace stores, below `StepaccError`.

```
StepaccError
└── StoreError                a trace store cannot be read
    ├── StoreSchemaError      it lacks a table or column, or a column has a type that cannot be read
    ├── UnfollowableError     it tells nothing of what changed in it
    └── UnknownProjectError   it has no project or experiment of a name that the settings give
```
"""

from stepacc_core.errors import StepaccError


class StoreError(StepaccError):
    """A trace store cannot be read."""


class StoreSchemaError(StoreError):
    """A store lacks a table or column, or has a column of a type that cannot be read; the message names them."""


class UnknownProjectError(StoreError):
    """A store has no project of a name that the settings give; the message lists those it has."""


class UnfollowableError(StoreError):
    """A store tells nothing of what changed in it; its windows can be ingested all the same."""
