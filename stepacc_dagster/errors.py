"""The errors of the Dagster plugin, below `StepaccError`.

```
StepaccError
├── RunStorageError           the database that keeps Dagster's runs was lost in the middle of one
├── PartitionTimeoutError     the scoring of one partition took longer than its metric's manifest allows
├── ScorerError               a metric raised an error, which its contract forbids
├── UnknownIdError            nothing is known by an id that was given, or more than one thing
├── ExportError               scores cannot be written as a file: a package that does it is not installed
├── WriteBackError            scores cannot be written back to where the traces came from
│   └── RefusedScoreError     a server does not take a score; others it may
├── RedactionKeyError         there is no key to redact with, or it is another one than the database's
├── SchemaError               the schema `stepacc` is not the one this version works with
│   ├── SchemaMissingError    there is none
│   ├── SchemaOlderError      it is older; `stepacc db upgrade` brings it up to date
│   └── SchemaNewerError      it is of a version that this one does not know
└── DatabaseError             the database cannot be used
    ├── DatabaseUrlError      its URL cannot be read, or names another driver or database
    ├── UnreachableError      no server answers, or it lets nobody in
    ├── ServerTooOldError     it is older than PostgreSQL 15
    ├── EncodingError         it is not in UTF-8
    └── LocalServerError      the local server cannot be started
        └── MissingServerError    no PostgreSQL is installed
```
"""

from stepacc_core.errors import StepaccError


class DatabaseError(StepaccError):
    """The database cannot be used; the message never shows a password."""


class DatabaseUrlError(DatabaseError):
    """A database URL cannot be read, or names another driver or another database."""


class UnreachableError(DatabaseError):
    """No server answers at the URL, or it lets nobody in.

    Args:
        message: a sentence with the address, the server's answer and what to do.
        transient: whether trying again later may help, as after a refused connection.
    """

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


class ServerTooOldError(DatabaseError):
    """The server is older than PostgreSQL 15."""


class EncodingError(DatabaseError):
    """The database is in another encoding than UTF-8."""


class LocalServerError(DatabaseError):
    """The local PostgreSQL server cannot be started; the message names the place and its log."""


class MissingServerError(LocalServerError):
    """No PostgreSQL binaries are installed in any place that is looked in."""


class SchemaError(StepaccError):
    """The schema `stepacc` in the database is not the one this version works with."""


class SchemaMissingError(SchemaError):
    """The database has no tables of stepacc."""


class SchemaOlderError(SchemaError):
    """The tables are of an older version of stepacc; `stepacc db upgrade` brings them up to date."""


class SchemaNewerError(SchemaError):
    """The tables are of a version of stepacc that this one does not know."""


class ScorerError(StepaccError):
    """A metric raised an error on one occurrence, although whatever is wrong with that is to be a result.

    Args:
        metric: name of the metric.
        occurrence: the trace or session, as "trace `id`".
        error: what it raised.
    """

    def __init__(self, metric: str, occurrence: str, error: Exception) -> None:
        super().__init__(
            f"Metric `{metric}` raised {type(error).__name__} on {occurrence} ({error}); nothing of the partition was "
            "stored. Mend the metric: what is wrong with an occurrence is to be a failed result."
        )
        self.metric = metric
        self.occurrence = occurrence


class RunStorageError(StepaccError):
    """The database that keeps Dagster's runs was lost in the middle of one; what was stored before is whole."""


class UnknownIdError(StepaccError):
    """Nothing is known by an id that was given, or more than one thing."""


class RedactionKeyError(StepaccError):
    """There is no key to redact with, or it is not the one that the database's values were redacted with.

    The message shows no part of a key.
    """


class PartitionTimeoutError(StepaccError):
    """The scoring of one Dagster partition took longer than the metric's manifest allows.

    Args:
        metric: name of the metric.
        partition_key: key of the partition.
        seconds: the limit.
    """

    def __init__(self, metric: str, partition_key: str, seconds: int) -> None:
        super().__init__(
            f"Scoring partition {partition_key} by `{metric}` took longer than the {seconds} s its manifest allows; "
            "nothing of it was stored. Use shorter partitions, or raise timeout_seconds in the manifest."
        )
        self.metric = metric
        self.partition_key = partition_key
        self.seconds = seconds


class ReportError(StepaccError):
    """A report cannot be drawn, since a package that draws it is not installed."""


class ExportError(StepaccError):
    """Scores cannot be written in a format, since a package that writes it is not installed."""


class WriteBackError(StepaccError):
    """Scores cannot be written back to where the traces came from; the message shows no credentials.

    Args:
        message: a sentence with the server, its answer and what to do.
        transient: whether trying again later may help, as after a refused connection.
    """

    def __init__(self, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.transient = transient


class RefusedScoreError(WriteBackError):
    """A server does not take a score, or one of several that were sent together; others it may.

    Args:
        message: what the server says of it.
        status: its HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, transient=False)
        self.status = status
