"""Links to a trace in the UI of the store it came from, by a template that people set."""

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from stepacc_core.errors import ConfigError

PLACEHOLDER = "{trace_id}"
EXAMPLE = "https://phoenix.example.org/projects/1/traces/{trace_id}"

_OTHER_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_NOT_OF_A_URL = re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]")
"""What RFC 3986 lets no URL contain as it is."""
_STEPS_IN_A_PATH = ("", ".", "..")
"""Ids with which a browser would go elsewhere than to the trace, however they are written."""


@dataclass(frozen=True, slots=True)
class TraceUrl:
    """The address of a trace in its store's own UI, with `{trace_id}` where the id goes.

    Raises:
        ConfigError: it is no http or https address, has no `{trace_id}` after its host, another placeholder, a
            character that no URL has, or a user or password.
    """

    template: str

    def __post_init__(self) -> None:
        """Refuse a template that gives no link."""
        if fault := _fault(self.template):
            # A password must not be repeated where more people see it.
            given = "" if "@" in self.template else f" {self.template!r}"
            msg = f"trace_url{given} {fault}; write one such as {EXAMPLE}."
            raise ConfigError(msg, "trace_url")

    def of(self, trace_id: str) -> str | None:
        """Return the link to a trace, its id percent-encoded; None for an id that no path can hold."""
        return (
            None if trace_id in _STEPS_IN_A_PATH else _filled(self.template, quote(trace_id, safe="", errors="replace"))
        )

    @property
    def home(self) -> str:
        """The address of the UI itself: scheme and host."""
        parts = urlsplit(self.template)
        return f"{parts.scheme}://{parts.netloc}"


def _fault(template: str) -> str | None:
    """Return what is wrong with a template, to follow its name; None where nothing is."""
    url = _filled(template, "x")
    if other := _OTHER_PLACEHOLDER.search(url):
        return f"has the placeholder {other[0]}, and only {PLACEHOLDER} is known"
    if strange := _NOT_OF_A_URL.search(url):
        return f"has the character {strange[0]!r}, which a URL holds percent-encoded only"
    if fault := fault_of_host(url):
        return fault
    if PLACEHOLDER not in template:
        return f"has no {PLACEHOLDER}, so every trace would have the same link"
    return f"has {PLACEHOLDER} in its host" if PLACEHOLDER in urlsplit(template).netloc else None


def fault_of_host(url: str) -> str | None:
    """Return what is wrong with scheme and host of an address that people set, to follow its name; None: nothing."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "has a host or port that cannot be read"
    if parts.scheme not in ("http", "https") or not host:
        return "is no http or https address"
    return "names a user or password, which everybody would see" if "@" in parts.netloc else None


def _filled(template: str, quoted: str) -> str:
    return template.replace(PLACEHOLDER, quoted)
