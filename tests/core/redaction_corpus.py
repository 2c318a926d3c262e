"""Secrets and personal data made up from a seed, each with what it is and how it must be found."""

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

from stdnum import luhn

_ALNUM = string.ascii_letters + string.digits
_HEX = "0123456789abcdef"


@dataclass(frozen=True)
class Sensitive:
    """Something that must not be stored.

    Attributes:
        kind: as which it is redacted.
        value: what must not be found anywhere.
        written: the text in which it stands, where it is nothing by itself.
    """

    kind: str
    value: str
    written: str


def corpus(count: int, seed: int = 1) -> list[Sensitive]:
    """Return as many, kind after kind in turn, no two alike."""
    rng = random.Random(seed)  # noqa: S311 (seeded on purpose)
    made: dict[str, Sensitive] = {}
    while len(made) < count:
        kind, make = _MAKERS[len(made) % len(_MAKERS)]
        value, template = make(rng)
        made[value] = Sensitive(kind, value, template.format(value))
    return list(made.values())


def _some(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choices(alphabet, k=count))


def _email(rng: random.Random) -> tuple[str, str]:
    name = f"{rng.choice(['ann', 'bob', 'zoë', 'li'])}.{_some(rng, string.ascii_lowercase, 6)}"
    return (
        f"{name}+{rng.randrange(99)}@{_some(rng, string.ascii_lowercase, 5)}.example.{rng.choice(['org', 'co.uk'])}",
        "{}",
    )


def _phone(rng: random.Random) -> tuple[str, str]:
    number = rng.choice(
        [
            f"+49 30 9{rng.randrange(10_000, 99_999)}{rng.randrange(10, 99)}",
            f"+1-415-{rng.randrange(600, 999)}-{rng.randrange(1_000, 9_999)}",
            f"+44 20 79{rng.randrange(10, 99)} {rng.randrange(1_000, 9_999)}",
            f"(212) {rng.randrange(600, 910)}-{rng.randrange(1_000, 9_999)}",
        ]
    )
    return number, "call {} please"


def _labelled_phone(rng: random.Random) -> tuple[str, str]:
    return f"0{rng.randrange(10, 99)} {rng.randrange(100_000, 9_999_999)}", "phone: {}"


def _card(rng: random.Random) -> tuple[str, str]:
    start = rng.choice(["4", "51", "55", "2221", "37", "6011"])
    digits = start + _some(rng, string.digits, (14 if start == "37" else 15) - len(start))
    digits += luhn.calc_check_digit(digits)
    if len(digits) == 16 and rng.random() < 0.5:
        digits = " ".join(digits[at : at + 4] for at in range(0, 16, 4))
    return digits, "{}"


def _iban(rng: random.Random) -> tuple[str, str]:
    bank, account = _some(rng, string.digits, 8), _some(rng, string.digits, 10)
    check = 98 - int(f"{bank}{account}131400") % 97
    plain = f"DE{check:02}{bank}{account}"
    return rng.choice([plain, " ".join(plain[at : at + 4] for at in range(0, 22, 4))]), "IBAN {} of ours"


def _jwt(rng: random.Random) -> tuple[str, str]:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": _some(rng, string.digits, 10), "n": rng.randrange(10**6)})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join((*encoded, _some(rng, _ALNUM, 43))), "{}"


def _private_key(rng: random.Random) -> tuple[str, str]:
    body = "\n".join(_some(rng, _ALNUM, 64) for _ in range(3))
    kind = rng.choice(["RSA ", "", "OPENSSH "])
    return body, f"-----BEGIN {kind}PRIVATE KEY-----\n{{}}\n-----END {kind}PRIVATE KEY-----\n"


def _password(rng: random.Random) -> tuple[str, str]:
    word = _some(rng, string.ascii_lowercase, 8) + str(rng.randrange(100, 999))
    return word, rng.choice(['{{"password": "{}"}}', "password: {}", "PASSWORD={}", '{{"client_secret": "{}"}}'])


def _in_url(rng: random.Random) -> tuple[str, str]:
    return _some(rng, _ALNUM, 12), "postgresql://app:{}@db.example.org:5432/shop"


def _of(*forms: Callable[[random.Random], str]) -> Callable[[random.Random], tuple[str, str]]:
    return lambda rng: (rng.choice(forms)(rng), "{}")


_TOKENS = _of(
    lambda rng: f"sk-proj-{_some(rng, _ALNUM, 20)}7{_some(rng, _ALNUM, 20)}",
    lambda rng: f"sk-ant-api03-{_some(rng, _ALNUM, 40)}5{_some(rng, _ALNUM, 40)}",
    lambda rng: f"AKIA{_some(rng, string.ascii_uppercase + string.digits, 16)}",
    lambda rng: f"ghp_{_some(rng, _ALNUM, 36)}",
    lambda rng: f"github_pat_{_some(rng, _ALNUM, 22)}_{_some(rng, _ALNUM, 30)}",
    lambda rng: f"glpat-{_some(rng, _ALNUM, 20)}",
    lambda rng: f"xoxb-{rng.randrange(10**11, 10**12)}-{rng.randrange(10**11, 10**12)}-{_some(rng, _ALNUM, 24)}",
    lambda rng: f"AIza{_some(rng, _ALNUM, 35)}",
    lambda rng: f"hf_{_some(rng, _ALNUM, 34)}",
    lambda rng: f"sk_live_{_some(rng, _ALNUM, 24)}",
    lambda rng: f"SG.{_some(rng, _ALNUM, 22)}.{_some(rng, _ALNUM, 43)}",
    lambda rng: f"npm_{_some(rng, _ALNUM, 36)}",
    lambda rng: f"pypi-AgEIcHlwaS5vcmc{_some(rng, _ALNUM, 80)}",
    lambda rng: f"lsv2_pt_{_some(rng, _HEX, 32)}_{_some(rng, _HEX, 10)}",
    lambda rng: f"dapi{_some(rng, _HEX, 32)}",
    lambda rng: f"gsk_{_some(rng, _ALNUM, 52)}",
)


def _bearer(rng: random.Random) -> tuple[str, str]:
    return f"{_some(rng, _ALNUM, 20)}8{_some(rng, _ALNUM, 10)}", "Authorization: Bearer {}"


_MAKERS: list[tuple[str, Callable[[random.Random], tuple[str, str]]]] = [
    ("email", _email),
    ("token", _TOKENS),
    ("phone", _phone),
    ("card", _card),
    ("iban", _iban),
    ("token", _TOKENS),
    ("jwt", _jwt),
    ("secret", _password),
    ("phone", _labelled_phone),
    ("token", _bearer),
    ("private_key", _private_key),
    ("secret", _in_url),
    ("email", _email),
]

HARMLESS = (
    "4a7e3c1e-9f0b-4c1d-8a2b-1234567890ab",
    "c39b5254cd91a0ee96c96491dc225d36",
    "0af7651916cd43dd8448eb211c80319c",
    "b7ad6b7169203331",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "order A-17, then order 114-3941689-8772232 and PO-2026-000417",
    "tracking 1Z999AA10123456784, invoice 2026-11-30/0042, ticket #8812345678",
    "2026-11-30T19:07:09.123456+01:00",
    "1764529629000000000",
    "1764529629123",
    "the price is 1,234,567.89 USD, or 25.00, or +12.5 %, or -1000000000",
    "lookup_order check_refund_policy issue_refund transfer_to_agent search_articles get_weather send_message",
    "call_abc123DEF456ghi789JKL012 toolu_01A09q90qw90lq917835lq9 chatcmpl-9xYzAbCdEfGhIjKlMnOpQrStUv",
    "resp_68a1b2c3d4e5f60718293a4b5c6d7e8f run-0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0 msg_01XFDUDYJgAACzvnptvVoYEL",
    "gpt-5-mini-2026-08-07 claude-sonnet-4-5-20250929 text-embedding-3-small",
    "the password must be at least twelve characters long; forgot your password? Reset your password now",
    "a secret meeting, the token limit, input_tokens: 900, max_tokens=4096, key features, an api key is needed",
    "10.0.0.12:5432 192.168.1.1 https://example.org/a/b?page=2&size=50#top http://127.0.0.1:4318/v1/traces",
    "logo@2x.png, @staticmethod, user @ home, foo@bar, git@github.com:owner/repo.git, npm i react@18.2.0",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "version 1.2.3, build 20261130.4, python 3.11.7, ratio 0.4111111111111111, pi 3.141592653589793",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "Ich habe die Bestellung 4711 am 30.11.2026 storniert; Kundennummer 1002003004.",
    "ISBN 978-3-16-148410-0, EAN 4006381333931, SKU 5901234123457-XL, batch 1234-5678-9012",
    "{'type': 'object', 'properties': {'password': {'type': 'string', 'description': 'The password.'}}}",
    '{"order_id": "A-17", "amount": 25, "on": "2026-01-02", "ids": [1001, 1002], "phone_required": true}',
    "risk-free, task-based, disk-usage-report-2026, ask-me-anything-about-orders, desk-lamp-with-usb-port-2",
    "password = lexer.get_token(); secret = os.environ['SECRET']; api_key = settings[name]",
    "tel aviv, mobile 4 bedrooms, phone support 24 7, fax",
)
"""Texts as traces are full of them, in which nothing is to be found."""
