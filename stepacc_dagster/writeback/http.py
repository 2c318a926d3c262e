"""Asking a server by HTTP: errors that may pass are tried again, and each answer is told apart by what it means."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from urllib3.util import Retry

from stepacc_dagster.errors import RefusedScoreError, WriteBackError

_PASSING = frozenset({408, 425, 429, 502, 503, 504})
"""Answers with which a server says that it is busy, or something before it that it is away."""
_UNAUTHORISED = frozenset({401, 403, 407})
_TIMEOUT = (10.0, 60.0)  # seconds to connect, and until the next byte of an answer
_TRIES = 4
_LONGEST_WAIT = 60  # seconds that a server may ask us to wait
_SHOWN = 300
_OK, _REDIRECT, _BAD = 200, 300, 400


class Client:
    """A connection to one server, as a context manager.

    Args:
        base: its address, without a slash at its end.
        auth: what is sent with each request to say who asks.
        headers: likewise.
        hidden: credentials, which no error repeats, should an answer do so.
        repeatable_posts: whether a POST whose answer was lost may be sent again.
        tries: how often a request is tried in all.
        wait: seconds before the second try, doubled with each.
    """

    def __init__(  # noqa: PLR0913 (a connection's options)
        self,
        base: str,
        *,
        auth: AuthBase | None = None,
        headers: Mapping[str, str] | None = None,
        hidden: Sequence[str] = (),
        repeatable_posts: bool = True,
        tries: int = _TRIES,
        wait: float = 0.5,
    ) -> None:
        self._base, self._hidden = base, tuple(hidden)
        self._session = requests.Session()
        self._session.auth = auth or _NoAuth()
        self._session.headers.update({"User-Agent": "stepacc", **(headers or {})})
        methods = {"GET", "PATCH", "PUT", "DELETE", *({"POST"} if repeatable_posts else ())}
        retry = Retry(
            total=tries - 1,
            allowed_methods=methods,
            status_forcelist=_PASSING,
            backoff_factor=wait,
            raise_on_status=False,
            retry_after_max=_LONGEST_WAIT,
        )
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=retry))

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close its connections."""
        self._session.close()

    def ask(  # noqa: PLR0913 (the parts of a request)
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        parameters: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Send a request and return the answer, which is a success.

        Raises:
            RefusedScoreError: the server refuses what was sent.
            WriteBackError: the server does not answer, is busy, does not know who asks, or is another one.
        """
        try:
            answer = self._session.request(
                method,
                f"{self._base}{path}",
                json=json,
                data=data,
                headers=headers,
                params=parameters,
                timeout=_TIMEOUT,
                allow_redirects=False,  # credentials are for this server alone
            )
        except requests.RequestException as error:
            # Of the error its kind only: its text may repeat a header that cannot be sent.
            msg = f"{self._base} does not answer ({type(error).__name__}); start the server, or correct write_back.url."
            raise WriteBackError(
                msg, transient=isinstance(error, requests.ConnectionError | requests.Timeout)
            ) from None
        if _OK <= answer.status_code < _REDIRECT:
            return answer
        raise self._error(answer)

    def ask_json(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Send a request as `ask` does and return the object of JSON that answers it.

        Raises:
            RefusedScoreError: as `ask`.
            WriteBackError: as `ask`; or the answer is something else, so that it is another server.
        """
        answer = self.ask(method, path, **options)
        try:
            found = answer.json()
        except requests.JSONDecodeError:
            found = None
        if isinstance(found, dict):
            return found
        msg = f"{self._base}{path} answers with no object of JSON, as the server of this kind does; correct write_back."
        raise WriteBackError(msg, transient=False)

    def _error(self, answer: requests.Response) -> WriteBackError:
        status = answer.status_code
        if status in _PASSING:
            return WriteBackError(f"{self._base} is busy or away (HTTP {status}); try again later.", transient=True)
        if status in _UNAUTHORISED:
            msg = (
                f"{self._base} does not let us in (HTTP {status}); correct the values of the environment variables "
                "that write_back names."
            )
            return WriteBackError(msg, transient=False)
        if status < _BAD:
            msg = (
                f"{self._base} answers with a redirect (HTTP {status}); give the address it leads to in write_back.url."
            )
            return WriteBackError(msg, transient=False)
        said = answer.text
        for value in self._hidden:
            said = said.replace(value, "***")
        said = " ".join(said.split())[:_SHOWN]
        return RefusedScoreError(f"HTTP {status}: {said or answer.reason}", status)


class BearerAuth(AuthBase):
    """Sends a token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the token to a request."""
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class _NoAuth(AuthBase):
    """Sends nothing; without it a `.netrc` would be read, which no setting names."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Leave a request as it is."""
        return request


def basic_auth(username: str, password: str) -> AuthBase:
    """Return what sends a name and a password, whatever letters they are written in."""
    return HTTPBasicAuth(username.encode(), password.encode())


def secret(name: str) -> str:
    """Return the value of an environment variable that holds a credential.

    Raises:
        WriteBackError: it is not set, or empty.
    """
    if value := os.environ.get(name, "").strip():
        return value
    msg = f"The environment variable {name}, which write_back names, is not set; set it where Dagster's runs are."
    raise WriteBackError(msg, transient=False)
