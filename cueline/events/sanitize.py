"""Removes secrets and invalid text from facts before they are recorded.

The process that drives a session sanitizes outside data before it decides, so live
state and replay see the same bytes. The codec checks again, and refuses what
sanitizing would change (I11).
"""

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache, lru_cache
from operator import is_not
from types import NoneType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, JsonValue, Secret, SecretStr

from cueline.events.spelling import SQUEEZED_OUT, Spelling, spellings, squeezed

REDACTED = "[redacted]"
MAX_DEPTH = 64
"""The greatest depth of lists and objects; deeper values are cut off, because JSON readers fail."""
TOO_DEEP = "[nested too deeply]"
TOO_LARGE = "[number too large]"
_MARKS = (REDACTED, TOO_DEEP, TOO_LARGE)
_HIGHEST = 2**63 - 1
SHORTEST_SECRET = 8
CUT = "\ufdd0"
"""The mark at which a tool has cut its output, and perhaps a secret.

Unicode reserves the character for such uses; it is not recorded.
"""
_EDGE = 3
"""The fewest characters of a secret that are removed at a cut; fewer reveal nothing."""
_ROUNDS = 8
_ALIKE = bytes.maketrans(b"123456789[", b"000000000{")
"""A translation table of JSON: digits to zero and lists to objects, so one search finds all."""
_NUL, _LARGE = "\\u0000", "0" * len(str(2**63))
_UNFIT = dict.fromkeys((0, *range(0xD800, 0xE000)), "\ufffd")

T = TypeVar("T")
Record = TypeVar("Record", bound=BaseModel)


@lru_cache(maxsize=256)
def _spellings(secret: str) -> tuple[Spelling, ...]:
    """Return the forms of *secret*, which each journal of this process needs."""
    return tuple(spellings(secret))


class Redactor:
    """Removes known secrets from text, in each form in which they are likely to appear."""

    def __init__(self, secrets: Iterable[SecretStr] = ()) -> None:
        known = {fit(secret.get_secret_value().strip()) for secret in secrets}
        known = {value for value in known if len(value) >= SHORTEST_SECRET}
        found = {each.text: each for value in known for each in _spellings(value)}
        # Replacing cannot remove a secret that our own marker contains.
        kept = [each for text, each in found.items() if not any(text in mark for mark in _MARKS)]
        kept.sort(key=lambda each: (-len(each.text), each.text))
        self._values = Secret(known)
        self._spellings: Secret[Sequence[Spelling]] = Secret(kept)
        self._needles = Secret(tuple({each.needle for each in kept}))
        self._knows_some = bool(kept)

    @property
    def spellings(self) -> Sequence[Spelling]:
        """The forms of all secrets."""
        return self._spellings.get_secret_value()

    def redact(self, text: str) -> tuple[str, bool]:
        """Return *text* without secrets and cut marks, and whether the text was changed."""
        if CUT not in text and not self.finds(text.encode(errors="replace")):
            return text, False
        clean = text
        # In theory, a marker can complete another secret beside it.
        for _ in range(_ROUNDS):
            before = clean
            for pattern in self._suspected(before):
                clean = pattern.sub(REDACTED, clean)
            if CUT in clean:
                clean = self._without_edges(clean)
            if clean == before:
                return (text, False) if clean == text else (clean, True)
        return REDACTED, True

    def redact_parts(self, text: str) -> str:
        """Return *text* without secrets, and without pieces as long as the shortest secret."""
        clean, _ = self.redact(text)
        hidden: set[int] = set()
        for value in self._values.get_secret_value():
            for first in range(len(value) - SHORTEST_SECRET + 1):
                part = value[first : first + SHORTEST_SECRET]
                for found in re.finditer(f"(?={re.escape(part)})", clean):
                    hidden.update(range(found.start(), found.start() + SHORTEST_SECRET))
        told = "".join("\0" if at in hidden else letter for at, letter in enumerate(clean))
        return re.sub("\0+", REDACTED, told)

    def finds(self, content: bytes) -> bool:
        """Whether *content*, text or JSON, may contain a secret; `False` is certain."""
        needles = self._needles.get_secret_value() if self._knows_some else ()
        return bool(needles) and any(map(squeezed(content).__contains__, needles))

    def _suspected(self, text: str) -> Iterator[re.Pattern[str]]:
        inside = squeezed(text.encode(errors="replace"))
        for each in self.spellings:
            if each.needle in inside:
                yield each.pattern()

    def _without_edges(self, text: str) -> str:
        """Return *text* without cut marks, and without pieces of secrets next to these marks."""
        needles = self._needles.get_secret_value()
        mirrored = [needle[::-1] for needle in needles]
        first, *others = text.split(CUT)
        kept = [first]
        for after in others:
            kept[-1] = _without_end(kept[-1], needles)
            kept.append(_without_end(after[::-1], mirrored, REDACTED[::-1])[::-1])
        return "".join(kept)


def cut(text: str, most: int) -> str:
    """Return the start of *text*, at most *most* characters, with a cut mark."""
    return text if len(text) <= most else text[:most] + CUT


def _without_end(text: str, needles: Collection[str], mark: str = REDACTED) -> str:
    """Return *text*, which was cut off, with *mark* instead of the start of a secret at its end."""
    whole = text.rstrip("\ufffd")  # the cut may have split a character, too
    window = whole[-4 * max(map(len, needles), default=0) :]
    inside = squeezed(window.encode(errors="replace"))
    left = max((_overlap(inside, needle) for needle in needles), default=0)
    if left < _EDGE:
        return text
    at = len(whole)
    while left:
        at -= 1
        left -= whole[at] not in SQUEEZED_OUT
    return whole[:at] + mark


def _overlap(text: str, needle: str) -> int:
    """Return how many characters at the end of *text* are the start of *needle*."""
    at = max(0, len(text) - len(needle) + 1)
    while needle and (at := text.find(needle[0], at)) >= 0:
        if needle.startswith(text[at:]):
            return len(text) - at
        at += 1
    return 0


def sanitize(value: T, redactor: Redactor) -> tuple[T, bool]:
    """Return *value* in a form that can be recorded, and whether it was changed.

    *value* is JSON, a fact, a part of a fact, or a dataclass or tuple of these.
    """
    kept = _sanitize(value, redactor, 0)
    return cast("T", kept), kept is not value


def sanitize_record(record: Record, redactor: Redactor) -> Record:
    """Return *record* without secrets and invalid text; fast if nothing has to change."""
    try:
        payload = record.__pydantic_serializer__.to_json(record)
    except ValueError:  # it holds a value that JSON lacks
        return sanitize(record, redactor)[0]
    return sanitize(record, redactor)[0] if needs_sanitizing(payload, redactor) else record


def needs_sanitizing(payload: bytes, redactor: Redactor) -> bool:
    """Whether sanitizing might change *payload*, which is JSON; `False` is certain.

    Sanitizing takes ten times as long as writing, and seldom finds anything.
    """
    alike = payload.translate(_ALIKE)
    # Searching bytes has six times the start-up cost of text in Python.
    text = alike.decode()
    return (
        # A loop: a generator costs three times as much here.
        _NUL in text
        # The serializer writes this for a lone surrogate in a key, without an error.
        or "\ufffd" in text
        or "NaN" in text
        or "Infinity" in text
        or _LARGE in text
        or CUT in text
        # `count` looks at each byte, `replace` jumps from one brace to the next.
        or len(alike) - len(alike.replace(b"{", b"")) > MAX_DEPTH
        or redactor.finds(payload)
    )


def fit(text: str) -> str:
    """Return *text* without NUL and lone surrogates, which databases refuse."""
    if "\0" in text:
        return with_pairs(text).translate(_UNFIT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return with_pairs(text).translate(_UNFIT)
    return text


def with_pairs(text: str) -> str:
    """Return *text* with one character instead of each pair of surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _sanitize(value: Any, redactor: Redactor, depth: int = 0) -> Any:
    """Return *value* without secrets and invalid text; *value* itself if nothing has to change."""
    kept = value
    match value:
        case str():
            kept = redactor.redact(fit(value))[0]
        case None | bool():
            pass
        case int() | float():
            kept = _sanitize_number(value, redactor)
        case dict() | list() if depth >= MAX_DEPTH:
            kept = TOO_DEEP
        case dict():
            kept = _sanitize_object(value, redactor, depth + 1)
        case list():
            items = [_sanitize(item, redactor, depth + 1) for item in value]
            kept = items if _differ(items, value) else value
        case tuple():
            pieces = tuple(_sanitize_field(part, redactor) for part in value)
            kept = pieces if _differ(pieces, value) else value
        case _ if changes := _changes(value, redactor):
            kept = _with_changes(value, changes)
    return kept


def _sanitize_number(value: float, redactor: Redactor) -> float | str:
    """Return the number *value*; a text if the number contains a secret or is not valid JSON."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    try:
        text = str(value)
    except ValueError:  # Python writes 4,300 digits at most
        return TOO_LARGE
    kept, changed = redactor.redact(text)
    return kept if changed else value


def _sanitize_object(value: dict[str, Any], redactor: Redactor, depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    same = True
    for key, item in value.items():
        clean_key, clean_item = (
            _sanitize(str(key), redactor, depth),
            _sanitize(item, redactor, depth),
        )
        same = same and clean_key is key and clean_item is item
        # Two keys may have become one; keep both values.
        while clean_key in kept:
            clean_key += "_"
        kept[clean_key] = clean_item
    return value if same else kept


def _differ(kept: Iterable[object], value: Iterable[object]) -> bool:
    return any(map(is_not, kept, value))


def _changes(record: object, redactor: Redactor) -> dict[str, Any]:
    """Return the new values of the fields of *record* that have to change, by name."""
    changes = {}
    for name, clean in _free_fields(cast("Hashable", type(record))).items():
        value = getattr(record, name)
        if value is not None and (kept := clean(value, redactor)) is not value:
            changes[name] = kept
    return changes


def _with_changes(record: Any, changes: dict[str, Any]) -> Any:
    if isinstance(record, BaseModel):
        return record.model_copy(update=changes)
    return replace(record, **changes)


def _sanitize_field(value: Any, redactor: Redactor) -> Any:
    """Sanitize a value and keep its type: a number stays a number.

    Depth starts anew, so that sanitizing a part and the whole agree.
    """
    if isinstance(value, str):
        return redactor.redact(fit(value))[0]
    if isinstance(value, int):
        return value if -_HIGHEST <= value <= _HIGHEST else _HIGHEST if value > 0 else -_HIGHEST
    if isinstance(value, float):
        return value if math.isfinite(value) else 0.0
    return _sanitize(value, redactor, 0)


@cache
def _free_fields(record: Hashable) -> dict[str, Callable[[Any, Redactor], Any]]:
    """Return the fields of a class that can hold any text, each with its sanitizer."""
    typed: dict[str, object] = {}
    if isinstance(record, type) and issubclass(record, BaseModel):
        typed = {name: field.annotation for name, field in record.model_fields.items()}
    elif is_dataclass(record):
        typed = {field.name: field.type for field in fields(record)}
    return {
        name: _sanitize if annotation is JsonValue else _sanitize_field
        for name, annotation in typed.items()
        if not _is_closed(annotation)
    }


def _is_closed(annotation: object) -> bool:
    if annotation is bool or get_origin(annotation) is Literal:
        return True
    choices = get_args(annotation)
    return bool(choices) and all(c in (NoneType, ...) or _is_closed(c) for c in choices)
