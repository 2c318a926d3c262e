"""Tokens that tell themselves by their form: those of single providers, JWTs, private keys, and headers.

Most forms are those of the plugins of detect-secrets; those of its forms that need a quote or a name beside the value
are covered by `assigned`. What it lacks, mostly providers of models and tools, is below.
"""

import re
from collections.abc import Iterator
from importlib import import_module
from itertools import chain

from stepacc_core.redaction.detector import Detector, Place

_FROM_LIBRARY = (
    ("aws", "AWSKeyDetector", "A3T[A-Z0-9]|A[BKS]IA|ACCA|(?i:aws[^\\n]{0,20}(?:key|pw|pass|token))"),
    ("discord", "DiscordBotTokenDetector", r"[MNO][a-zA-Z0-9_-]{23,25}\.[a-zA-Z0-9_-]{6}\."),
    ("github_token", "GitHubTokenDetector", "gh[opsur]_"),
    ("mailchimp", "MailchimpDetector", "[0-9a-z]{32}-us[0-9]"),
    ("npm", "NpmDetector", "npm_|_authToken|(?i:npm[ _-]?token)"),
    ("sendgrid", "SendGridDetector", r"SG\.[a-zA-Z0-9_-]{22}\."),
    ("slack", "SlackDetector", r"(?i:xox[abpors]-|hooks\.slack)"),
    ("square_oauth", "SquareOAuthDetector", "sq0csp-"),
    ("stripe", "StripeDetector", "[rs]k_live_"),
    ("twilio", "TwilioKeyDetector", r"(?:AC|SK)[a-z0-9]{32}"),
)
"""Module and class of each plugin of detect-secrets that is used, and the gate of its forms."""

_OWN = (
    r"sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}",  # OpenAI, Anthropic, DeepSeek, Langfuse and those that follow them
    r"(?:sk|rk)_test_[0-9A-Za-z]{16,}",
    r"whsec_[0-9A-Za-z+/=]{24,}",
    r"github_pat_[0-9A-Za-z_]{22,}",
    r"AIza[0-9A-Za-z_-]{35}",
    r"ya29\.[0-9A-Za-z_-]{20,}",
    r"GOCSPX-[0-9A-Za-z_-]{20,}",
    r"hf_[0-9A-Za-z]{30,}",
    r"gsk_[0-9A-Za-z]{40,}",
    r"xai-[0-9A-Za-z]{40,}",
    r"pplx-[0-9A-Za-z]{32,}",
    r"tvly-[0-9A-Za-z-]{20,}",
    r"nvapi-[0-9A-Za-z_-]{40,}",
    r"r8_[0-9A-Za-z]{30,}",
    r"ntn_[0-9A-Za-z]{40,}",
    r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}",
    r"dapi[0-9a-f]{32}",
    r"lin_api_[0-9A-Za-z]{32,}",
    r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}",
    r"do[opr]_v1_[0-9a-f]{64}",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"xapp-[0-9]-[0-9A-Z]+-[0-9]+-[0-9a-f]{32,}",
    r"gl(?:agent|cbt|dt|ft|imt|oas|pat|ptt|rt|soat)-[0-9A-Za-z_-]{20,}",
    r"pypi-Ag[0-9A-Za-z_-]{70,}",
    r"[0-9]{8,10}:[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])",  # Telegram
    r"AccountKey=[0-9A-Za-z+/]{86}==",
    r"hvs\.[0-9A-Za-z_-]{24,}",
    r"glsa_[0-9A-Za-z]{32}_[0-9a-f]{8}",
    r"key-[0-9a-f]{32}",
    r"AGE-SECRET-KEY-1[0-9A-Z]{58}",
)
_OWN_GATE = (
    r"sk-[A-Za-z0-9_-]{20}|[rs]k_test_|whsec_|github_pat_|AIza[0-9A-Za-z_-]{35}|ya29\.|GOCSPX-|hf_[0-9A-Za-z]{30}|gsk_|"
    r"xai-[0-9A-Za-z]{40}|pplx-|tvly-|nvapi-|r8_[0-9A-Za-z]{30}|ntn_[0-9A-Za-z]{40}|lsv2_|dapi[0-9a-f]{32}|lin_api_|"
    r"PMAK-|do[opr]_v1_|shp(?:at|ca|pa|ss)_|xapp-|gl[a-z]{2,5}-|pypi-Ag|[0-9]{8}:[0-9A-Za-z_-]{35}|AccountKey=|hvs\.|glsa_|key-[0-9a-f]{32}|AGE-SECRET"
)
_OWN_TOKEN = re.compile(rf"(?<![0-9A-Za-z])(?:{'|'.join(_OWN)})")

_HEADER = re.compile(r"\b(?:bearer|basic)\s+(?=[A-Za-z._~+/-]*[0-9=])([A-Za-z0-9._~+/-]{16,}={0,2})", re.IGNORECASE)
_HEADER_GATE = r"(?i:bearer|basic)[^A-Za-z0-9]"

_JWT = re.compile(r"(?<![0-9A-Za-z])eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*){0,3}")
_JWT_GATE = r"eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]"

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:.*?-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|.*)"
    r"|PuTTY-User-Key-File-[0-9].*",
    re.DOTALL,
)
_PRIVATE_KEY_GATE = "PRIVATE KEY|PuTTY-User-Key-File"


def token_detectors() -> list[Detector]:
    """Return the detectors of private keys, JWTs, tokens of providers, and passwords in URLs."""
    return [
        Detector("private_key", _PRIVATE_KEY_GATE, _private_keys),
        Detector("jwt", _JWT_GATE, _jwts),
        *(_of_library(*plugin) for plugin in _FROM_LIBRARY),
        Detector("token", _OWN_GATE, _own_tokens),
        Detector("token", _HEADER_GATE, _in_headers),
    ]


def _private_keys(text: str) -> Iterator[Place]:
    return (found.span() for found in _PRIVATE_KEY.finditer(text))


def _own_tokens(text: str) -> Iterator[Place]:
    return (found.span() for found in _OWN_TOKEN.finditer(text))


def _in_headers(text: str) -> Iterator[Place]:
    return (found.span(1) for found in _HEADER.finditer(text))


def _jwts(text: str) -> Iterator[Place]:
    from detect_secrets.plugins.jwt import JwtTokenDetector  # noqa: PLC0415 (see `_of_library`)

    for found in _JWT.finditer(text):
        token = found[0].rstrip(".")
        if JwtTokenDetector.is_formally_valid(token):
            yield found.start(), found.start() + len(token)


def _of_library(module: str, plugin: str, gate: str) -> Detector:
    # Loaded when a redactor is made: the package loads `requests`, for a verification that is never asked for here.
    patterns: list[re.Pattern[str]] = getattr(import_module(f"detect_secrets.plugins.{module}"), plugin).denylist
    valued = plugin == "AWSKeyDetector"  # whose second form has the secret in its group; a group elsewhere is a prefix

    def find(text: str) -> Iterator[Place]:
        for found in chain.from_iterable(pattern.finditer(text) for pattern in patterns):
            start, end = found.span(1 if valued and found.re.groups else 0)
            if start == 0 or not (text[start - 1].isalnum() and text[start].isalnum()):
                yield start, end

    return Detector("token", gate, find)
