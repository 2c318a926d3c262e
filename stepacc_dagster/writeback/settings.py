"""Settings of a write-back: which server, and the names of the environment variables that hold its credentials."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from stepacc_core.errors import ConfigError
from stepacc_dagster.trace_links import fault_of_host

_NOTHING_ELSE = with_config(ConfigDict(extra="forbid"))
"""A setting that does not exist is refused when settings are built from plain values."""


@dataclass(frozen=True, slots=True)
class _Server:
    url: str
    metrics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse an address that is none, or that holds a password."""
        if fault := _fault(self.url):
            given = "" if "@" in self.url else f" {self.url!r}"  # a password must not be repeated
            msg = f"write_back.url{given} {fault}; write one such as https://phoenix.example.org."
            raise ConfigError(msg)

    @property
    def base(self) -> str:
        """The address without a slash at its end."""
        return self.url.rstrip("/")


@_NOTHING_ELSE
@dataclass(frozen=True, slots=True)
class PhoenixWriteBack(_Server):
    """Annotations of traces and sessions in an Arize Phoenix server.

    Args:
        url: its address.
        metrics: names of metrics, or of members of their families, that are written; none means all of the source.
        kind: tells the destinations apart.
        api_key_env: the environment variable that holds its API key, where it asks for one.

    Raises:
        ConfigError: a setting is refused.
    """

    kind: Literal["phoenix"] = "phoenix"
    api_key_env: str | None = None


@_NOTHING_ELSE
@dataclass(frozen=True, slots=True)
class MlflowWriteBack(_Server):
    """Assessments of traces in an MLflow tracking server.

    Args:
        url: its address.
        metrics: names of metrics, or of members of their families, that are written; none means all of the source.
        kind: tells the destinations apart.
        token_env: the environment variable that holds a bearer token; or
        username_env: that of a user's name, with
        password_env: that of the password.

    Raises:
        ConfigError: a setting is refused.
    """

    kind: Literal["mlflow"] = "mlflow"
    token_env: str | None = None
    username_env: str | None = None
    password_env: str | None = None

    def __post_init__(self) -> None:
        """Refuse half of a login, and two."""
        _Server.__post_init__(self)
        if (self.username_env is None) != (self.password_env is None):
            msg = "write_back has one of username_env and password_env; give both, or neither."
            raise ConfigError(msg)
        if self.token_env is not None and self.username_env is not None:
            msg = "write_back has token_env and username_env; give one of them."
            raise ConfigError(msg)


@_NOTHING_ELSE
@dataclass(frozen=True, slots=True)
class LangfuseWriteBack(_Server):
    """Scores of traces and sessions in a Langfuse server.

    Args:
        url: its address.
        metrics: names of metrics, or of members of their families, that are written; none means all of the source.
        kind: tells the destinations apart.
        public_key_env: the environment variable that holds the public key of the project.
        secret_key_env: that of the secret key.

    Raises:
        ConfigError: a setting is refused.
    """

    kind: Literal["langfuse"] = "langfuse"
    public_key_env: str = "LANGFUSE_PUBLIC_KEY"
    secret_key_env: str = "LANGFUSE_SECRET_KEY"  # noqa: S105 (the name of a variable)


@_NOTHING_ELSE
@dataclass(frozen=True, slots=True)
class OtlpWriteBack(_Server):
    """Events `gen_ai.evaluation.result` sent by OTLP over HTTP.

    Args:
        url: address of the receiver; events go to its `/v1/logs`.
        metrics: as for Phoenix.
        kind: tells the destinations apart.
        headers_env: the environment variable that holds headers as `name=value,name=value`, percent-encoded, as
            `OTEL_EXPORTER_OTLP_HEADERS` does.

    Raises:
        ConfigError: a setting is refused.
    """

    kind: Literal["otlp"] = "otlp"
    headers_env: str | None = None


WriteBackSettings = PhoenixWriteBack | MlflowWriteBack | LangfuseWriteBack | OtlpWriteBack

_ADAPTER: TypeAdapter[WriteBackSettings] = TypeAdapter(Annotated[WriteBackSettings, Field(discriminator="kind")])


def write_back_settings(values: Mapping[str, Any]) -> WriteBackSettings:
    """Build settings from plain values, as a YAML file has them.

    Raises:
        ConfigError: there is no such kind, or a setting is unknown, missing or refused; the sentence names it.
    """
    try:
        return _ADAPTER.validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in ("write_back", *first["loc"]))
        # What was given is left out: somebody may have written a key here instead of the name of its variable.
        msg = f"`{name}`: {first['msg']}; docs/export.md lists the settings of each kind."
        raise ConfigError(msg) from None


def _fault(url: str) -> str | None:
    if fault := fault_of_host(url):
        return fault
    parts = urlsplit(url)
    return "has something after its path" if parts.query or parts.fragment else None
