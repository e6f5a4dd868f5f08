"""The forms in which a known secret is likely to appear in a text.

Theory of operation: searching every recorded text for all forms has to be fast. So a
text is first squeezed: backslashes and line breaks, also as JSON escapes them, are
removed. The squeezed text is searched for squeezed forms. Only a form that is found there
is searched for exactly.
"""

import base64
import json
import re
import string
from collections.abc import Iterator
from typing import NamedTuple

_UNRESERVED = (string.ascii_letters + string.digits + "-._").encode()
_PLAIN = set(_UNRESERVED.decode())
_LEFT_ALONE = (b"", b"~", b"~/", b"~!'()*", b"*")
"""Further characters that common URL quoting leaves unchanged."""
_FOR_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_SQUEEZED_OUT = b"\\nr\n\r \t"
"""The letters of escaped line breaks, in JSON and in JSON inside JSON."""
SQUEEZED_OUT = _SQUEEZED_OUT.decode()
_BREAK = r"(?:(?:[\r\n]|\\+[rn])[ \t]*)*"


class Spelling(NamedTuple):
    """One form of a secret."""

    text: str
    broken: bool
    """Whether the form may contain line breaks."""
    needle: str
    """The squeezed form; a squeezed text contains it if the text contains the form."""

    def pattern(self) -> re.Pattern[str]:
        """Return a pattern for the form, also with the doubled backslashes of JSON inside JSON."""
        pieces = re.findall(r"\\+|[^\\]", self.text, re.DOTALL)
        between = _BREAK if self.broken else ""
        return re.compile(between.join(r"\\+" if p[0] == "\\" else re.escape(p) for p in pieces))


def squeezed(content: bytes) -> str:
    """Return *content* without characters that may appear inside a form of a secret."""
    return content.translate(None, _SQUEEZED_OUT).decode()


def spellings(secret: str) -> Iterator[Spelling]:
    """Yield *secret* unchanged, and in the forms of JSON, URLs, base64 and hexadecimal.

    Line breaks may be in base64 and hexadecimal.
    """
    encoded = {*_in_base64(secret.encode()), *_in_hexadecimal(secret.encode())}
    told = dict.fromkeys(_by_code(secret), False)
    for form in (secret, *encoded):
        told |= dict.fromkeys(_quoted(form), form in encoded)
    for text, broken in told.items():
        yield Spelling(text, broken, squeezed(text.encode()))


def _quoted(text: str) -> Iterator[str]:
    yield text
    if not _PLAIN.issuperset(text):
        for quoted in (text, *_in_urls(text)):
            yield from _in_json(quoted)


def _in_base64(secret: bytes) -> Iterator[str]:
    """Yield the base64 characters that depend on *secret* alone, for each offset."""
    for shift, first in ((0, 0), (1, 2), (2, 3)):
        last = (shift + len(secret)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(shift) + secret).decode()[first:last]


def _in_hexadecimal(secret: bytes) -> Iterator[str]:
    yield from (secret.hex(), secret.hex().upper())


def _in_urls(text: str) -> Iterator[str]:
    for left_alone in _LEFT_ALONE:
        kept = _UNRESERVED + left_alone
        for hexadecimal in ("%{:02X}", "%{:02x}"):
            pieces = (chr(b) if b in kept else hexadecimal.format(b) for b in text.encode())
            quoted = "".join(pieces)
            yield from (quoted, quoted.replace("%20", "+"))


def _in_json(text: str) -> Iterator[str]:
    for spelt in (json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]):
        yield from (spelt, spelt.replace("/", "\\/"), spelt.translate(_FOR_HTML))


def _by_code(secret: str) -> Iterator[str]:
    """Yield *secret* with each character as a number, as URLs and JSON allow."""
    units = secret.encode("utf-16-be").hex(" ", 2).split()
    for code in ("%{:02X}", "%{:02x}"):
        yield "".join(code.format(b) for b in secret.encode())
    for written in (units, [unit.upper() for unit in units]):
        yield "".join(f"\\u{unit}" for unit in written)
