"""The JSON schemas of answers, derived from what the client's methods return."""

import ast
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from importlib import import_module
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from cueline.client.open_read_models import Page
from cueline.client.receipt import Receipt
from cueline.client.session import Session
from cueline.gateway.routes import field_docs, syntax_of

Schema = dict[str, Any]
_PLAIN: Final[dict[Any, Schema]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    NoneType: {"type": "null"},
    Decimal: {"type": "string", "description": "An exact decimal number."},
    datetime: {"type": "string", "format": "date-time"},
}
_LISTS: Final = (list, tuple, frozenset, set)


class AnswerSchemas:
    """The schemas of the answers, and those that they name."""

    def __init__(self) -> None:
        self.components: dict[str, Schema] = {}
        """The schemas of rows and receipts, by the names of their classes."""

    def of(self, call: Callable[..., Awaitable[object]]) -> Schema:
        """Return the schema of what *call* answers."""
        found = _hints(call, sys.modules[call.__module__])["return"]
        if get_origin(found) is Page:
            return {
                "type": "object",
                "required": ["rows", "more", "next"],
                "properties": {
                    "rows": {"type": "array", "items": self._of(get_args(found)[0])},
                    "more": {"type": "boolean", "description": "Whether there are further rows."},
                    "next": {
                        "type": ["string", "null"],
                        "description": "The `cursor` of the next page; null if there is none.",
                    },
                    "damage": {"type": "string", "description": "The damage that ends the rows."},
                },
            }
        return self._of(Receipt if found is Session else found)

    def _of(self, kind: Any) -> Schema:  # noqa: PLR0911 - one case for each kind of type
        if kind in _PLAIN:
            return _PLAIN[kind]
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self._of(arguments[0])
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in (Union, UnionType):
            return {"anyOf": [self._of(each) for each in arguments]}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self._of(arguments[1])}
        if origin in _LISTS or (isinstance(origin, type) and hasattr(origin, "__getitem__")):
            return {"type": "array", "items": self._of(arguments[0]) if arguments else {}}
        if is_dataclass(kind) and isinstance(kind, type):
            return self._of_class(kind)
        if isinstance(kind, type) and issubclass(kind, Exception):
            return {"type": "string"}
        return {}

    def _of_class(self, kind: type) -> Schema:
        name = kind.__name__
        if name not in self.components:
            self.components[name] = {}  # it may contain itself
            hints = _hints(kind, sys.modules[kind.__module__])
            docs: dict[str, str] = {}
            for each in reversed(kind.__mro__):
                docs |= field_docs(each) if is_dataclass(each) else {}
            self.components[name] = {
                "type": "object",
                "description": (inspect.getdoc(kind) or "").partition("\n")[0],
                "required": [each.name for each in fields(kind)],
                "properties": {
                    each.name: {"description": docs.get(each.name, "")} | self._of(hints[each.name])
                    for each in fields(kind)
                },
            }
        return {"$ref": f"#/components/schemas/{name}"}


def _hints(subject: Any, module: Any) -> dict[str, Any]:
    """Return the types of fields or of a function, also of names that are only quoted."""
    names = dict(vars(module))
    if isinstance(subject, type):
        for each in subject.__mro__:
            names |= _quoted(sys.modules[each.__module__])
    else:
        names |= _quoted(module)
    return get_type_hints(subject, names, include_extras=True)


def _quoted(module: Any) -> dict[str, Any]:
    """Return the names that a module imports for type checkers only."""
    names: dict[str, Any] = {}
    if not module.__name__.startswith("cueline."):
        return names
    for node in syntax_of(inspect.getsource(module)):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom) and each.module is not None:
                    there = import_module(each.module)
                    names |= {alias.name: getattr(there, alias.name) for alias in each.names}
    return names
