"""Where scores go: the server of each kind of settings, with the credentials of the environment."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import unquote

from stepacc_dagster.storage.write_backs import DueScore
from stepacc_dagster.writeback.http import BearerAuth, Client, basic_auth, secret
from stepacc_dagster.writeback.langfuse import LangfuseDestination
from stepacc_dagster.writeback.mlflow import MlflowDestination
from stepacc_dagster.writeback.otlp import OtlpDestination
from stepacc_dagster.writeback.phoenix import PhoenixDestination
from stepacc_dagster.writeback.settings import (
    LangfuseWriteBack,
    MlflowWriteBack,
    OtlpWriteBack,
    PhoenixWriteBack,
    WriteBackSettings,
)


class Destination(Protocol):
    """A server that scores are written back to."""

    @property
    def batch_size(self) -> int:
        """Most scores that are written together."""

    def check(self) -> None:
        """Ask whether it is the server it should be, and lets us in.

        Raises:
            WriteBackError: it is not, or does not.
        """

    def write(self, scores: Sequence[DueScore]) -> list[str]:
        """Write scores, each in the place of an earlier one of its occurrence, metric, version and config.

        Returns:
            What the server says of them that somebody should know.

        Raises:
            RefusedScoreError: it does not take one of them; the others may have been written or not.
            WriteBackError: it cannot be used now, or at all.
        """


def destination_name(settings: WriteBackSettings) -> str:
    """Return what a destination is called in the database: kind and address."""
    return f"{settings.kind} {settings.base}"


@contextmanager
def opened_destination(settings: WriteBackSettings, source: str) -> Iterator[Destination]:
    """Give the destination of some settings; its connections are closed at the end.

    Raises:
        WriteBackError: an environment variable with a credential is not set.
    """
    match settings:
        case PhoenixWriteBack():
            token = None if settings.api_key_env is None else secret(settings.api_key_env)
            with _with_token(settings.base, token) as client:
                yield PhoenixDestination(client, source)
        case MlflowWriteBack():
            with _mlflow_client(settings) as client:
                yield MlflowDestination(client, source)
        case LangfuseWriteBack():
            public, private = secret(settings.public_key_env), secret(settings.secret_key_env)
            with Client(settings.base, auth=basic_auth(public, private), hidden=[private]) as client:
                yield LangfuseDestination(client, source)
        case OtlpWriteBack():
            headers = {} if settings.headers_env is None else _headers(secret(settings.headers_env))
            with Client(settings.base, headers=headers, hidden=list(headers.values())) as client:
                yield OtlpDestination(client, source)


def _with_token(base: str, token: str | None, *, repeatable_posts: bool = True) -> Client:
    if token is None:
        return Client(base, repeatable_posts=repeatable_posts)
    return Client(base, auth=BearerAuth(token), hidden=[token], repeatable_posts=repeatable_posts)


def _mlflow_client(settings: MlflowWriteBack) -> Client:
    if settings.username_env is None or settings.password_env is None:
        token = None if settings.token_env is None else secret(settings.token_env)
        return _with_token(settings.base, token, repeatable_posts=False)
    username, password = secret(settings.username_env), secret(settings.password_env)
    return Client(settings.base, auth=basic_auth(username, password), hidden=[password], repeatable_posts=False)


def _headers(told: str) -> dict[str, str]:
    """Read headers as OTEL_EXPORTER_OTLP_HEADERS has them."""
    pairs = (pair.partition("=") for pair in told.split(",") if pair.strip())
    return {unquote(name.strip()): unquote(value.strip()) for name, _, value in pairs}
