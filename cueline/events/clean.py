"""What may be recorded: no secret, and nothing hostile.

The process that drives a session cleans what comes from outside before it
decides, so that live state and replay see the same bytes; the codec cleans
again and refuses if anything would change (I11).
"""

import base64
import json
import math
import string
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import is_not
from types import NoneType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, Secret, SecretStr

REDACTED = "[redacted]"
MAX_DEPTH = 64
"""Lists and objects that lie deeper in one another are cut off; JSON readers
give up somewhere above 100."""
TOO_DEEP = "[nested too deeply]"
TOO_LARGE = "[number too large]"
_MARKS = (REDACTED, TOO_DEEP, TOO_LARGE)
_HIGHEST = 2**63 - 1
SHORTEST_SECRET = 8
_ROUNDS = 8
_UNRESERVED = (string.ascii_letters + string.digits + "-._").encode()
_LEFT_ALONE = (b"", b"~", b"~/", b"~!'()*", b"*")
"""What else the usual ways to quote for a URL leave as it is."""
_FOR_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})
_ALIKE = bytes.maketrans(b"123456789[", b"000000000{")
"""Each digit like a zero, each list like an object: all is found in one text."""
_NUL, _LARGE = "\\u0000", "0" * len(str(2**63))
_UNFIT = dict.fromkeys((0, *range(0xD800, 0xE000)), "\ufffd")

T = TypeVar("T")
Record = TypeVar("Record", bound=BaseModel)


class Redactor:
    """Takes known secrets out of text, in each form in which they are likely to turn up."""

    def __init__(self, secrets: Iterable[SecretStr] = ()) -> None:
        known = {_fit(secret.get_secret_value().strip()) for secret in secrets}
        found = {form for value in known if len(value) >= SHORTEST_SECRET for form in _forms(value)}
        # What a mark of ours holds cannot be taken out by setting marks.
        found = {form for form in found if not any(form in mark for mark in _MARKS)}
        self._forms = Secret(tuple(sorted(found, key=lambda form: (-len(form), form))))
        self._needles = Secret(tuple({*found, *map(_escaped, found)}))

    def redact(self, text: str) -> tuple[str, bool]:
        """Return *text* without secrets, and whether there were any."""
        if not self._holds(text):
            return text, False
        clean = text
        # Setting a mark may, in theory, complete another secret beside it.
        for _ in range(_ROUNDS):
            for form in self._forms.get_secret_value():
                clean = clean.replace(form, REDACTED)
            if not self._holds(clean):
                return clean, True
        return REDACTED, True

    def _holds(self, text: str) -> bool:
        return any(map(text.__contains__, self._forms.get_secret_value()))

    def finds(self, content: bytes) -> bool:
        """Say whether *content*, text or JSON, may hold a secret; `False` is certain."""
        needles = self._needles.get_secret_value()
        return bool(needles) and any(map(content.decode().__contains__, needles))


def _forms(secret: str) -> set[str]:
    """Return *secret* as it is, and as base64, URLs and JSON (also JSON in JSON) spell it."""
    found = {secret, *_in_base64(secret.encode())}
    found.update([quoted for form in found for quoted in _in_urls(form)])
    for _ in range(2):
        found.update([spelt for form in found for spelt in _in_json(form)])
    return found


def _in_base64(secret: bytes) -> Iterator[str]:
    """Tell the characters that depend on *secret* alone, wherever it begins in what is encoded."""
    for shift, first in ((0, 0), (1, 2), (2, 3)):
        last = (shift + len(secret)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(shift) + secret).decode()[first:last]


def _in_urls(text: str) -> Iterator[str]:
    for left_alone in _LEFT_ALONE:
        kept = _UNRESERVED + left_alone
        for hexadecimal in ("%{:02X}", "%{:02x}"):
            parts = (chr(b) if b in kept else hexadecimal.format(b) for b in text.encode())
            quoted = "".join(parts)
            yield from (quoted, quoted.replace("%20", "+"))


def _in_json(text: str) -> Iterator[str]:
    for spelt in (_escaped(text), json.dumps(text)[1:-1]):
        yield from (spelt, spelt.replace("/", "\\/"), spelt.translate(_FOR_HTML))


def _escaped(text: str) -> str:
    """Return *text* as the log's own JSON spells it."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def clean(value: T, redactor: Redactor) -> tuple[T, bool]:
    """Return *value* fit to be recorded, and whether anything had to change.

    A value is JSON, a fact, a part of one, or a dataclass or tuple of these.
    """
    kept = _clean(value, redactor, 0)
    return cast("T", kept), kept is not value


def clean_record(record: Record, redactor: Redactor) -> Record:
    """Return *record* fit to be recorded; seldom does it have to be looked at field by field."""
    try:
        payload = record.__pydantic_serializer__.to_json(record)
    except ValueError:  # it holds what JSON cannot say
        return clean(record, redactor)[0]
    return clean(record, redactor)[0] if suspicious(payload, redactor) else record


def suspicious(payload: bytes, redactor: Redactor) -> bool:
    """Say whether cleaning might change what *payload*, in JSON, says; `False` is certain.

    Cleaning takes ten times as long as writing, and seldom finds anything.
    """
    alike = payload.translate(_ALIKE)
    # To search in bytes costs Python six times as much to begin with.
    text = alike.decode()
    return (
        # One after the other: a generator costs three times as much here.
        _NUL in text
        # What the serializer writes for a lone surrogate in a key, and does not say.
        or "\ufffd" in text
        or "NaN" in text
        or "Infinity" in text
        or _LARGE in text
        # `count` looks at each byte, `replace` jumps from one brace to the next.
        or len(alike) - len(alike.replace(b"{", b"")) > MAX_DEPTH
        or redactor.finds(payload)
    )


def _fit(text: str) -> str:
    """Return *text* without NUL and lone surrogates, which no database takes."""
    if "\0" in text:
        return text.translate(_UNFIT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.translate(_UNFIT)
    return text


def _clean(value: Any, redactor: Redactor, depth: int) -> Any:
    """Return *value* itself where nothing has to change."""
    kept = value
    match value:
        case str():
            kept = redactor.redact(_fit(value))[0]
        case None | bool():
            pass
        case int() | float():
            kept = _clean_number(value, redactor)
        case dict() | list() if depth >= MAX_DEPTH:
            kept = TOO_DEEP
        case dict():
            kept = _clean_object(value, redactor, depth + 1)
        case list():
            items = [_clean(item, redactor, depth + 1) for item in value]
            kept = items if _differ(items, value) else value
        case tuple():
            parts = tuple(_clean_field(part, redactor) for part in value)
            kept = parts if _differ(parts, value) else value
        case _ if changes := _changes(value, redactor):
            kept = _with_changes(value, changes)
    return kept


def _clean_number(value: float, redactor: Redactor) -> float | str:
    """Return a JSON number, or the text of one that not every reader of JSON takes."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    try:
        text = str(value)
    except ValueError:  # Python writes out 4,300 digits at most
        return TOO_LARGE
    kept, changed = redactor.redact(text)
    fits = isinstance(value, float) or -_HIGHEST - 1 <= value <= _HIGHEST
    return value if fits and not changed else kept


def _clean_object(value: dict[str, Any], redactor: Redactor, depth: int) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    same = True
    for key, item in value.items():
        clean_key, clean_item = _clean(str(key), redactor, depth), _clean(item, redactor, depth)
        same = same and clean_key is key and clean_item is item
        # Two keys may have become one; neither value is lost.
        while clean_key in kept:
            clean_key += "_"
        kept[clean_key] = clean_item
    return value if same else kept


def _differ(kept: Iterable[object], value: Iterable[object]) -> bool:
    return any(map(is_not, kept, value))


def _changes(record: object, redactor: Redactor) -> dict[str, Any]:
    """Return those fields of *record* that have to change; none where it has no fields."""
    changes = {}
    for name in _free_fields(cast("Hashable", type(record))):
        value = getattr(record, name)
        if value is not None and (kept := _clean_field(value, redactor)) is not value:
            changes[name] = kept
    return changes


def _with_changes(record: Any, changes: dict[str, Any]) -> Any:
    if isinstance(record, BaseModel):
        return record.model_copy(update=changes)
    return replace(record, **changes)


def _clean_field(value: Any, redactor: Redactor) -> Any:
    """Clean a value that has to keep its type: a number stays a number.

    Depth counts anew, so that cleaning a part and cleaning the whole agree.
    """
    if isinstance(value, str):
        return redactor.redact(_fit(value))[0]
    if isinstance(value, int):
        return value if -_HIGHEST <= value <= _HIGHEST else _HIGHEST if value > 0 else -_HIGHEST
    if isinstance(value, float):
        return value if math.isfinite(value) else 0.0
    return _clean(value, redactor, 0)


@cache
def _free_fields(record: Hashable) -> tuple[str, ...]:
    """Name the fields of a class whose values are not one of a few words that the code knows."""
    typed: dict[str, object] = {}
    if isinstance(record, type) and issubclass(record, BaseModel):
        typed = {name: field.annotation for name, field in record.model_fields.items()}
    elif is_dataclass(record):
        typed = {field.name: field.type for field in fields(record)}
    return tuple(name for name, annotation in typed.items() if not _is_closed(annotation))


def _is_closed(annotation: object) -> bool:
    if annotation is bool or get_origin(annotation) is Literal:
        return True
    choices = get_args(annotation)
    return bool(choices) and all(c in (NoneType, ...) or _is_closed(c) for c in choices)
