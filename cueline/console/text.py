"""Lines and texts for a terminal.

Texts of agents and tools may have any characters: these functions remove those that move
the cursor, change colours, or change the direction of text.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from cueline.events.message import Usage

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Control characters, and characters that a terminal does not show."""
_BENEATH = "  "
_UNIT = re.compile(r"(?<=\d) (?=[a-z])")
_MINUTE = 60
_HOUR = 3600
_DAY = 86_400
_SMALL = Decimal("0.0001")


def visible(text: str) -> str:
    """Return *text* with control and hidden characters as escapes."""
    plain = text.replace("\r\n", "\n").expandtabs(4)
    return _UNSEEN.sub(lambda found: f"\\x{ord(found[0]):02x}", plain)


def one_line(text: str, width: int) -> str:
    """Return the beginning of *text* on one line."""
    line = " ".join(visible(text).split())
    return line if len(line) <= width else line[: max(width - 1, 0)] + "…"


def capped(text: str, lines: int, width: int, of: str = "") -> list[str]:
    """Return the first *lines* of *text*, up to *width*, and the size of the omitted rest."""
    every = visible(text).rstrip("\n").split("\n")
    shown = [_cut(line, width) for line in every[:lines]]
    left = len(every) - lines
    return [*shown, f"… {count(left, 'more line')}{of}"] if left > 0 else shown


def is_capped(text: str, lines: int, width: int) -> bool:
    """Whether `capped` omits a part of *text*."""
    return capped(text, lines, width) != visible(text).rstrip("\n").split("\n")


def _cut(line: str, width: int) -> str:
    left = len(line) - width
    return f"{line[:width]}… {count(left, 'more character')}" if left > 0 else line


def diff_style(line: str) -> str:
    """Return the style of one line of a diff."""
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def is_diff(lines: Sequence[str]) -> bool:
    """Whether *lines* contain the head of a changed part of a diff, `@@ `."""
    return any(line.startswith("@@ ") for line in lines)


def wrapped(line: str, width: int) -> list[str]:
    """Return *line* in rows of *width*, broken at words, with its indent.

    A command stays in one piece, so that it can be copied, and so does a word that is too long.
    """
    text = line.lstrip(" ")
    indent = " " * (len(line) - len(text))
    if len(line) <= width or text.startswith("cueline "):
        return [line]
    rows = wrap(
        _UNIT.sub("\x00", text),  # a number stays with its unit
        width,
        initial_indent=indent,
        subsequent_indent=indent or _BENEATH,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [row.replace("\x00", " ") for row in rows]


def arguments(given: Mapping[str, object], width: int) -> str:
    """Return a call's arguments on one line."""
    return one_line(" ".join(f"{key}={json_of(value)}" for key, value in given.items()), width)


def json_of(value: object, indent: int | None = None) -> str:
    """Return *value* as JSON without ASCII escapes, except for control and hidden characters."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _UNSEEN.sub(lambda found: _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return re.sub("(....)", r"\\u\1", character.encode("utf-16-be").hex())


def duration(seconds: float) -> str:
    """Return a span of time, in its largest two units."""
    whole = int(seconds)
    if seconds < _MINUTE:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"  # noqa: PLR2004 - a digit is enough
    if whole < _HOUR:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // 60:02}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"


def money(usd: Decimal, *, estimated: bool = False) -> str:
    """Return a cost; small costs with more digits, an estimate with ~."""
    if estimated and usd:
        return f"~{money(usd)}"
    if usd == 0:
        return "$0"
    if usd >= 1:
        return f"${usd:.2f}"
    # The first four digits of the price of a cheap model's short answer are all zero.
    return f"${usd.quantize(min(_SMALL, Decimal(1).scaleb(usd.adjusted()))):f}"


def date_time(moment: datetime) -> str:
    """Return *moment* in local time, with the offset from UTC, in a form that `--since` accepts."""
    return moment.astimezone().isoformat(" ", "seconds")


def count(number: int, noun: str) -> str:
    """Return *number* with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def tokens_in(usage: "Usage") -> str:
    """Return the number of sent tokens, and of those read from or written to the cache."""
    cache = (
        f"{usage.cache_read:,} cached" if usage.cache_read else "",
        f"{usage.cache_write:,} written to cache" if usage.cache_write else "",
    )
    told = ", ".join(filter(None, cache))
    return f"{usage.sent:,} in{told and f' ({told})'}"


Tone = Literal["said", "agent", "thinking", "output", "doing", "good", "bad", "note", "dim"]
WIDTH = 160
"""The most characters of a foreign text in a line."""


class Line(NamedTuple):
    """A line of the output, and its style."""

    tone: Tone
    text: str
