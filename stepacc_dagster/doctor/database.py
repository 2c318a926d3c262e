"""Checks of a database of stepacc: the server, the schema, and what its user may do."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepacc_dagster.doctor.findings import Finding
from stepacc_dagster.doctor.wording import listed

_UPGRADE = "Run `stepacc db upgrade`"


@dataclass(frozen=True, slots=True)
class Server:
    """What answers at a database URL.

    Attributes:
        version: of the server.
        user: who is connected.
        read_only: whether it takes no writes: a standby, or set so.
        may_create: whether the user may create a schema in the database.
        may_stage: whether the user may create temporary tables, through which everything is written.
    """

    version: str
    user: str
    read_only: bool
    may_create: bool
    may_stage: bool


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema `stepacc` in a database.

    Attributes:
        revision: of its tables; None where the user may not look.
        expected: the revision that this version works with.
        newer: whether this version does not know the revision.
        may_upgrade: whether the user owns the schema and the tables.
        forbidden: rights that the user lacks there, as `INSERT on scores`.
    """

    revision: str | None
    expected: str
    newer: bool
    may_upgrade: bool
    forbidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Database:
    """A database of stepacc.

    Attributes:
        absent: why there is none yet, where that is no fault.
        problem: why it cannot be used, where that is one.
        server: what answers.
        schema: None where the database has no tables of stepacc.
        redaction: what is wrong with the key that values are redacted with.
    """

    absent: str | None = None
    problem: str | None = None
    server: Server | None = None
    schema: Schema | None = None
    redaction: str | None = None

    @property
    def usable(self) -> bool:
        """Whether its tables can be read by this version."""
        return (
            self.schema is not None
            and self.schema.revision == self.schema.expected
            and not any(each.startswith("SELECT") for each in self.schema.forbidden)
        )


def check_database(found: Database) -> Iterator[Finding]:
    """Say whether the database can be used, and by whom."""
    if found.absent:
        yield Finding(
            "note",
            found.absent,
            "Set STEPACC_DATABASE_URL to a database of your own and run `stepacc db upgrade`, or run `stepacc demo`, "
            "which makes a private one.",
        )
    if found.problem:
        yield Finding(
            "error",
            found.problem,
            "Nothing can be stored or scored until it is mended; then run `stepacc doctor` again.",
        )
    if found.server:
        yield from _server(found.server)
        yield from _schema(found.server, found.schema)
    if found.redaction:
        yield Finding(
            "error",
            found.redaction,
            "Mend it: until then nothing lands, no annotations are imported, and no source with a store of others is "
            "ingested.",
        )


def _server(server: Server) -> Iterator[Finding]:
    if server.read_only:
        yield Finding(
            "error",
            f"The server (PostgreSQL {server.version}) takes no writes: it is a standby, or set to read only.",
            "Name the primary server in the URL, or lift default_transaction_read_only of the user or database.",
        )
    else:
        yield Finding("ok", f"PostgreSQL {server.version} answers, the database is in UTF-8.")
    if not server.may_stage:
        yield Finding(
            "error",
            f"User {server.user} may not create temporary tables, through which everything is written.",
            f"Have the database's owner run GRANT TEMPORARY ON DATABASE ... TO {server.user}.",
        )


def _schema(server: Server, schema: Schema | None) -> Iterator[Finding]:
    if schema is None:
        remedy = (
            f"{_UPGRADE}."
            if server.may_create
            else f"User {server.user} may not create it: have the database's owner run CREATE SCHEMA stepacc "
            f"AUTHORIZATION {server.user}, then run `stepacc db upgrade`."
        )
        yield Finding("error", "The database has no tables of stepacc.", remedy)
        return
    if schema.newer:
        yield Finding(
            "error",
            f"The tables are of revision {schema.revision}, which this version of stepacc does not know; it knows up "
            f"to {schema.expected}.",
            "Upgrade stepacc here as it was elsewhere.",
        )
    elif schema.revision is not None and schema.revision != schema.expected:
        who = "" if schema.may_upgrade else f" as the owner of the schema, which {server.user} is not"
        yield Finding(
            "error",
            f"The tables are of revision {schema.revision}, and this version of stepacc works with {schema.expected}.",
            f"{_UPGRADE}{who}.",
        )
    elif schema.revision is not None:
        yield Finding("ok", f"The schema `stepacc` is at revision {schema.revision}, as this version expects.")
    if schema.forbidden:
        yield Finding(
            "error",
            f"User {server.user} lacks rights: {listed(schema.forbidden)}.",
            f"Have the owner of the tables grant them to {server.user}, or name another user in the URL; for reading "
            "alone, USAGE on the schema and SELECT on its tables are enough.",
        )
    else:
        yield Finding("ok", f"User {server.user} may read and write the tables of stepacc.")
