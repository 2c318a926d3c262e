"""Secrets that tell themselves by a name beside them: the key of an object, or `password: ...` in text."""

import re
from collections.abc import Iterator
from typing import Literal

from stepacc_core.redaction.detector import EDGE, Detector, Place

Role = Literal["secret", "token", "phone"]
"""What the key of a value says of it: `token` is a word with other meanings, so its value has to look like one."""

_SECRET_KEYS = (
    "password", "passwd", "passphrase", "pwd", "secret", "apikey", "accesskey", "accesskeyid", "secretkey",
    "privatekey", "accountkey", "signingkey", "encryptionkey", "accesstoken", "refreshtoken", "authtoken", "idtoken",
    "sessiontoken", "bearertoken", "securitytoken", "csrftoken", "authorization", "cookie", "credential", "cvv", "cvc",
)  # fmt: skip
_PHONE_KEYS = ("phone", "phonenumber", "telephone", "mobile", "mobilenumber", "cellphone", "msisdn", "whatsapp", "fax")
_CAMEL = re.compile(r"[^a-z0-9]")

_NAMES = (
    r"passw(?:or)?d|passphrase|pwd|secret(?:[_ -]?(?:access[_ -]?)?key)?|api[_ -]?key|access[_ -]?key|private[_ -]?key|"
    r"account[_-]?key|(?:access|refresh|auth|id|session|bearer|security|csrf)[_-]?token|client[_-]?secret|credentials?|"
    r"cvv2?|cvc2?"
)
_ASSIGNED = re.compile(
    rf"""
    (?:{_NAMES})
    (?: \\*["']? \s{{0,3}} (?: (?P<equals>=>?|:=) | : ) \s{{0,3}} | (?P<said>\s+is:?\s+) )
    (?: \\* (?P<quote>["']) (?P<quoted>(?:\\.|(?!(?P=quote))[^\\\n]){{1,400}}) (?P=quote)
      | (?P<bare>[^\s"'`,;&<>(){{}}\[\]|\\]{{3,400}}+) (?![(\[{{]) )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_GATE = (
    r"(?i:passw(?:or)?d|passphrase|pwd|secret|(?:api|access|private|account)[_ -]?key|"
    r"(?:access|refresh|auth|id|session|bearer|security|csrf)[_-]?token|credential)|"
    rf"{EDGE}(?i:cvv|cvc)"
)
_KEY_GATE = r"(?i:signing.?key|encryption.?key|authorization|cookie|token\\*[\"'])"
"""Keys that mean a secret and are in no text looked through by `_GATE`."""

_IN_QUERY = re.compile(
    r"[?&](?:sig|signature|token|key|code|x-amz-signature|x-goog-signature)=([^&#\s\"'<>]{16,})", re.IGNORECASE
)
_IN_QUERY_GATE = r"(?i:[?&]|\\u0026)(?i:sig|token|key|code|x-)"

_IN_URL = re.compile(r"://[^\s:/?#@\[\]\"']{0,100}:([^\s/@\"']{1,200})@")
_IN_URL_GATE = r":[^\s/@\"']+@"

_NOT_SECRET = re.compile(
    r"(?:\*+|x{3,}|•+|\.{3,}|<[^>]*>|\$\{?[\w.]+\}?|\{\{.*\}\}|%\w+%|null|none|nil|true|false|undefined|"
    r"string|str|text|required|optional|redacted|hidden|masked|missing|invalid|wrong|incorrect|empty)[.!]?",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"(?=[^\s]*[0-9])(?=[^\s]*[A-Za-z])[A-Za-z0-9._~+/=|:-]{16,}")
_MARKED = re.compile(r"[0-9!@#$%^*_+=~?]")


def assigned_detectors() -> list[Detector]:
    """Return the detectors of secrets beside a name, in the query of a URL, and before the host of one."""
    return [
        Detector("secret", _IN_URL_GATE, _in_urls),
        Detector("secret", f"{_GATE}|{_KEY_GATE}", _assigned),
        Detector("secret", _IN_QUERY_GATE, _in_queries),
    ]


def role_of(key: str) -> Role | None:
    """Return what the key of an object, or the name of an attribute, says of its value."""
    word = _CAMEL.sub("", key.rpartition(".")[2].lower()).rstrip("0123456789")
    word = word.removesuffix("s") if word != "s" else word
    if word.endswith(_SECRET_KEYS):
        return "secret"
    if word == "token":
        return "token"
    return "phone" if word.endswith(_PHONE_KEYS) or word == "tel" else None


def is_secret(text: str) -> bool:
    """Tell whether a text under a key that means a secret is one, and no placeholder."""
    return bool(text.strip()) and not _NOT_SECRET.fullmatch(text.strip())


def is_token(text: str) -> bool:
    """Tell whether a text looks like a token: long, without blanks, of letters and digits."""
    return _TOKEN.fullmatch(text) is not None


def _assigned(text: str) -> Iterator[Place]:
    for found in _ASSIGNED.finditer(text):
        if found["quoted"] is not None:
            if is_secret(found["quoted"].rstrip("\\")):
                start, end = found.span("quoted")
                yield start, end - (len(found["quoted"]) - len(found["quoted"].rstrip("\\")))
            continue
        start, end = found.span("bare")
        value = found["bare"].rstrip(".:!?)")
        # After a blank it may be a sentence that goes on, such as `password: must be long`.
        certain = found["equals"] is not None and text[start - 1] in "=>"
        if value and is_secret(value) and (certain or _MARKED.search(value)):
            yield start, start + len(value)


def _in_queries(text: str) -> Iterator[Place]:
    return (found.span(1) for found in _IN_QUERY.finditer(text))


def _in_urls(text: str) -> Iterator[Place]:
    return (found.span(1) for found in _IN_URL.finditer(text))
