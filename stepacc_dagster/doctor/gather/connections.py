"""Connections of an examination: short, read-only, and each database asked once."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from stepacc_core.errors import StepaccError
from stepacc_dagster.database import check_reachable, connect_engine, normalise_url
from stepacc_dagster.failures import sentence, unreachable

_CONNECTS_WITHIN = "5"
"""Seconds that a server gets to answer, unless the URL says otherwise."""
_ANSWERS_WITHIN = "5s"
_LONGEST = 500
"""Characters of what an error of others says."""


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Give a connection in a transaction in which Postgres refuses every write and ends every long statement."""
    with engine.connect() as connection:
        connection.execute(sa.text("SET TRANSACTION READ ONLY"))
        connection.execute(sa.text(f"SET LOCAL statement_timeout = '{_ANSWERS_WITHIN}'"))
        yield connection


class Connections:
    """Engines by URL; a server that does not answer is waited for once."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._known: dict[tuple[str, bool], sa.Engine | StepaccError] = {}

    def engine(self, url: str, *, ours: bool = True) -> sa.Engine:
        """Return an engine over a database that answers, disposed of when the stack is left.

        Args:
            url: any form that `normalise_url` takes.
            ours: whether it has to be new enough and in the encoding for stepacc, and not only to answer.

        Raises:
            DatabaseError: it does not answer, or cannot be used.
        """
        url = normalise_url(url)
        if (url, ours) not in self._known:
            self._known[url, ours] = self._opened(url, check_reachable if ours else _answers)
        known = self._known[url, ours]
        if isinstance(known, StepaccError):
            raise known
        return known

    def _opened(self, url: str, check: Callable[[sa.Engine], None]) -> sa.Engine | StepaccError:
        parsed = make_url(url)
        if "connect_timeout" not in parsed.query:
            parsed = parsed.update_query_dict({"connect_timeout": _CONNECTS_WITHIN})
        engine = connect_engine(parsed.render_as_string(hide_password=False))
        self._stack.callback(engine.dispose)
        try:
            check(engine)
        except StepaccError as error:
            return error
        return engine


def said(error: Exception) -> str:
    """Return what an error says, in one line that is not too long."""
    known = isinstance(error, StepaccError | DBAPIError)
    text = sentence(error) if known else f"{type(error).__name__}: {' '.join(str(error).split())}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _answers(engine: sa.Engine) -> None:
    try:
        with engine.connect():
            pass
    except DBAPIError as error:
        raise unreachable(engine.url, error) from error
