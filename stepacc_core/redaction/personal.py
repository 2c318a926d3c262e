"""Personal data: e-mail addresses, phone numbers, card numbers and IBANs, each checked by what makes it one."""

import re
from collections.abc import Iterator

from stepacc_core.redaction.detector import EDGE, Detector, Place

_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_DOMAIN = re.compile(rf"(?:@|%40)((?:{_LABEL}\.){{1,8}}[^\W\d_]{{2,24}})")
_LOCAL_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-'")
_LONGEST_LOCAL = 256
_NO_PERSON = re.compile(r"\dx\.(?:png|jpe?g|gif|webp|svg|avif)", re.IGNORECASE)
"""`logo@2x.png`."""

_BETWEEN = r"[ ().\-/\u00a0\u2010\u2011]{0,2}"
_INTERNATIONAL = re.compile(rf"(?<![\w+.])\+[1-9](?:{_BETWEEN}[0-9]){{6,14}}(?![0-9A-Za-z])")
_WITH_ZEROS = re.compile(r"(?<![\w+.,-])00[1-9][0-9]{0,2}(?:[ ().\-/]{1,2}[0-9]{2,}){2,5}(?![0-9A-Za-z])")
_AMERICAN = re.compile(
    r"(?<![\w+.-])(?:1[-. ])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}(?=([-.])))[-.]?[2-9][0-9]{2}[-.][0-9]{4}(?![\w-])"
)
_LABELLED = re.compile(
    r"\b(?:tele|cell|mobile ?)?(?:phone|mobile|tel|fax|whatsapp)(?:[ _]?(?:no\.?|number|nr\.?))?"
    r"\\*[\"']?(?:\s?[:=.]\s?|\sis\s|\s)\s?\\*[\"']?([+(]?[0-9](?:[ ().\-/]{0,2}[0-9]){6,14})(?![0-9A-Za-z])",
    re.IGNORECASE,
)
_PHONE_GATE = (
    rf"\+[1-9][^A-Za-z]{{6}}|{EDGE}00[1-9][0-9]{{0,2}}[ ()./-]{{1,2}}[0-9]{{2}}|"
    rf"{EDGE}(?:1[-. ])?\(?[2-9][0-9]{{2}}\)?[-. ]?[2-9][0-9]{{2}}[-.][0-9]{{4}}|"
    rf"(?i:phone|mobile|{EDGE}tel|fax|whatsapp)[^0-9\n]{{0,16}}[0-9]"
)
_PHONE = re.compile(r"[+(]?[0-9](?:[ ().\-/]{0,2}[0-9]){6,14}")

_CARD = re.compile(
    r"(?<![0-9A-Za-z_-])(?<![0-9]\.)[2-6][0-9]{3}(?:[0-9]{8,15}|(?:[ -][0-9]{2,6}){2,4})(?![0-9A-Za-z_])(?![.-][0-9])"
)
_CARD_GATE = EDGE + r"[2-6][0-9]{3}(?:[0-9]{8}|[ -][0-9]{4,6}[ -][0-9]{2})"
_GROUPS = {(4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3)}
_ISSUERS = re.compile(
    r"4(?:[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}|"
    r"3[47][0-9]{13}|3(?:0[0-5]|[689][0-9])[0-9]{11}|6(?:011|4[4-9][0-9]|5[0-9]{2})[0-9]{12}|62[0-9]{14,17}|"
    r"35(?:2[89]|[3-8][0-9])[0-9]{12}"
)

_IBAN = re.compile(r"(?<![0-9A-Za-z_-])[A-Za-z]{2}[0-9]{2}(?: ?[0-9A-Za-z]){11,30}")
_SHORTEST_IBAN = 15
_IBAN_GATE = EDGE + r"[A-Za-z]{2}[0-9]{2} ?[0-9A-Za-z]{4} ?[0-9A-Za-z]{4} ?[0-9A-Za-z]{3}"


def personal_detectors() -> list[Detector]:
    """Return the detectors of card numbers, IBANs, e-mail addresses and phone numbers."""
    return [
        Detector("card", _CARD_GATE, _cards),
        Detector("iban", _IBAN_GATE, _ibans),
        Detector("email", "@|%40", _emails),
        Detector("phone", _PHONE_GATE, _phones),
    ]


def is_card(digits: str) -> bool:
    """Tell whether digits are a card number: of the form of an issuer, with the right check digit."""
    if _ISSUERS.fullmatch(digits) is None or len(set(digits)) == 1:
        return False
    from stdnum import luhn  # noqa: PLC0415 (only what finds something pays for the libraries)

    return bool(luhn.is_valid(digits))


def is_phone(text: str) -> bool:
    """Tell whether a text under a key that means a phone number can be one."""
    return _PHONE.fullmatch(text.strip()) is not None


def _emails(text: str) -> Iterator[Place]:
    after = 0
    for found in _DOMAIN.finditer(text):
        at = found.start()
        start = at
        while start > max(after, at - _LONGEST_LOCAL) and _is_local(text[start - 1]):
            start -= 1
        while start < at and text[start] in ".'%-":
            start += 1
        if start < at and text[start:at] != "git" and not _NO_PERSON.fullmatch(found[1]):
            yield start, found.end()
        after = found.end()


def _is_local(char: str) -> bool:
    return char in _LOCAL_CHARS or (char > "\x7f" and char.isalnum())


def _cards(text: str) -> Iterator[Place]:
    for found in _CARD.finditer(text):
        groups = tuple(re.split("[ -]", found[0]))
        uniform = tuple(map(len, groups)) in _GROUPS and len(set(re.findall("[ -]", found[0]))) == 1
        if (len(groups) == 1 or uniform) and is_card("".join(groups)):
            yield found.span()


def _ibans(text: str) -> Iterator[Place]:
    from stdnum import iban  # noqa: PLC0415 (as above)

    for found in _IBAN.finditer(text):
        start, last = found.span()
        # What follows may be the next word: 'DE89 3704 0044 0532 0130 00 is mine'.
        ends = (end for end in range(last, start + _SHORTEST_IBAN - 1, -1) if _is_boundary(text, end))
        end = next((end for end in ends if iban.is_valid(text[start:end])), None)
        if end is not None:
            yield start, end


def _is_boundary(text: str, at: int) -> bool:
    return text[at - 1].isalnum() and (at == len(text) or not text[at].isalnum())


def _phones(text: str) -> Iterator[Place]:
    places = [*_of_region(_INTERNATIONAL, text, None), *_of_region(_WITH_ZEROS, text, None)]
    places += _of_region(_AMERICAN, text, "US")
    places += [found.span(1) for found in _LABELLED.finditer(text)]
    after = 0
    for start, end in sorted(places, key=lambda place: (place[0], -place[1])):
        if start >= after:
            yield start, end
            after = end


def _of_region(pattern: re.Pattern[str], text: str, region: str | None) -> Iterator[Place]:
    for found in pattern.finditer(text):
        written = found[0]
        while written:
            if _is_valid(f"+{written[2:]}" if written.startswith("00") else written, region):
                yield found.start(), found.start() + len(written)
                break
            # What follows may be another number: 'call +49 30 901820 12 times'.
            written = re.sub(r"[^0-9]*[0-9]+$", "", written)


def _is_valid(written: str, region: str | None) -> bool:
    import phonenumbers  # noqa: PLC0415 (as above)

    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(written, region))
    except phonenumbers.NumberParseException:
        return False
