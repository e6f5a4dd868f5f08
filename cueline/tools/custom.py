"""Tools that an agent declares itself: each is one command line, or one HTTP request.

A call becomes a call of the shipped tool that runs programs or sends requests. `{name}` in the
command or address stands for an argument, and `{{name}}` for the text `{name}`.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, Self

from msgspec.structs import replace
from pydantic import Field, JsonValue, model_validator

from cueline.actors.tool_port import ToolOrder
from cueline.errors import ToolFailedError
from cueline.events.agent import COMMAND_SCHEME, HTTP_SCHEME, ToolSpec
from cueline.events.agent_parts import problem_of
from cueline.events.fact import Part, shared_fields, text_of
from cueline.tools.arguments import check_arguments, problem_of_schema
from cueline.tools.http_access import HttpAccess
from cueline.tools.http_request import SECONDS, Method, http_request
from cueline.tools.shell import run_argv

_PLACEHOLDER: Final = re.compile(r"\{(\{)?([A-Za-z_]\w*)\}(?(1)\})")
_ADDRESS: Final = re.compile(
    r"(https?://(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::\d+)?)(?:[/?]\S*)?"
)
_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


class CustomTool(Part):
    """A tool that is one command line, or one HTTP request."""

    description: str = Field(min_length=1)
    command: tuple[str, ...] = ()
    url: str = ""
    method: Method = "GET"
    headers: dict[str, str] = Field(default={})
    parameters: dict[str, JsonValue] = Field(default={})
    """The JSON schema of the arguments; empty: each placeholder is a text."""
    declared: Literal["nothing", "read_only", "idempotent"] = "nothing"
    """Whether a call may be repeated."""
    sensitive: bool = False

    @model_validator(mode="after")
    def _can_be_meant(self) -> Self:
        if fault := next(filter(None, self._faults(self.command, self.url)), ""):
            raise ValueError(fault)
        return self

    def _faults(self, run: tuple[str, ...], url: str) -> Iterator[str]:
        schema, named = self._schema(), set(_names((*run, url)))
        if bool(run) == bool(url):
            yield "it needs either a `command`, a list, or a `url`"
        if run and (self.model_fields_set & {"method", "headers"} or [*_names(run[:1])]):
            yield "a `command` begins with its program, and has no `method` and no `headers`"
        if url and not _ADDRESS.fullmatch(url):
            yield f"{url!r} is no http address with a fixed host and without a password"
        yield problem_of(self.headers)
        if fault := problem_of_schema(schema):
            yield f"`parameters` is no JSON schema: {fault}"
        known: Any = schema.get("properties", {})
        needed: Any = schema.get("required", []) if url else known
        if not named <= {*known} & {*needed} or (run and named != {*known}):
            yield f"`parameters` needs {sorted(named)}, `required` for a `url`, alone for a command"

    def _schema(self) -> dict[str, JsonValue]:
        names = list(dict.fromkeys(_names((*self.command, self.url))))
        texts: dict[str, JsonValue] = {name: {"type": "string", "minLength": 1} for name in names}
        own: dict[str, JsonValue] = {"properties": texts, "required": [*names]}
        return {"type": "object", "additionalProperties": False, **(self.parameters or own)}

    def spec(self, name: str, http: HttpAccess, *, in_workspace: bool) -> ToolSpec:
        """Return the recorded form of the tool *name*.

        A request reaches its own host, and by a redirect what *http* allows. A command runs
        *in_workspace* if the agent has one.
        """
        fields = shared_fields(self, ToolSpec) | {"name": name, "parameters": self._schema()}
        fields["target"] = f"{COMMAND_SCHEME}{shlex.join(self.command)}"
        fields["needs_workspace"] = in_workspace
        if found := _ADDRESS.fullmatch(self.url):
            access = http.model_copy(update={"allow": (found[1], *(http.allow or ()))})
            options = {"headers": self.headers, "access": access.model_dump(mode="json")}
            fields |= {"options": options, "in_loop": True, "timeout_seconds": SECONDS}
            fields |= {"target": f"{HTTP_SCHEME}{self.method} {self.url}", "needs_workspace": False}
        digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
        return ToolSpec(**fields, digest=digest)


def shipped_order(order: ToolOrder) -> ToolOrder:
    """Return the call of a shipped tool that carries out *order*, the call of a custom tool.

    Raises:
        ToolFailedError: the arguments are invalid; the message is for the model.
    """
    spec = order.tool
    check_arguments(spec, order.arguments)
    known: Any = spec.parameters.get("properties", {})
    defaults = {n: e["default"] for n, e in known.items() if isinstance(e, dict) and "default" in e}
    values = defaults | order.arguments
    scheme, _, rest = spec.target.partition(":")
    keys = ["name", "timeout_seconds", "needs_workspace", "changes", "options"]
    kept: dict[str, Any] = {key: getattr(spec, key) for key in keys}
    if f"{scheme}:" == COMMAND_SCHEME:
        arguments: dict[str, Any] = {"command": list(_argv(shlex.split(rest), values))}
        tool = run_argv.spec()
    else:
        headers = kept["options"]["headers"]
        arguments = {**_request(rest, values), "headers": headers}
        tool, kept["options"] = http_request.spec(), kept["options"]["access"]
        order = replace(order, environment=(*order.environment, *order.secrets))
    update = {**kept, "own_name": tool.name}
    return replace(order, tool=tool.model_copy(update=update), arguments=arguments)


def _argv(parts: Sequence[str], values: Mapping[str, JsonValue]) -> Iterator[str]:
    """Yield the arguments; a part whose argument is left out is left out, too."""
    texts = {name: text_of(value) for name, value in values.items() if value is not None}
    for number, part in enumerate(parts):
        if not texts.keys() >= set(_names([part])):
            continue
        text = _filled(part, texts)
        if text[:1] == "-" != part[:1] and "--" not in parts[:number]:
            why = f"{text!r} begins with -, so {parts[0]} would take it for an option"
            raise ToolFailedError("invalid_arguments", why)
        yield text


def _request(target: str, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the method, address and body of a request."""
    method, _, url = target.partition(" ")
    named = {name: _quoted(values[name]) for name in _names([url])}
    address = _filled(url, named)
    if {".", ".."} & {*re.split(r"/|%2F|%5C", address.partition("?")[0])}:
        raise ToolFailedError("invalid_arguments", f"{address} has . or .. in its path")
    other = {n: value for n, value in values.items() if n not in named}
    if method in _BODY:
        return {"method": method, "url": address, "body": other or None}
    pairs = [(n, v) for n, e in other.items() for v in (e if isinstance(e, list) else [e])]
    if query := "&".join(f"{_quoted(n)}={_quoted(v)}" for n, v in pairs if v is not None):
        address = f"{address}{'&' if '?' in address else '?'}{query}"
    return {"method": method, "url": address}


def _quoted(value: JsonValue) -> str:
    text = text_of(value).encode(errors="replace")
    return re.sub(rb"[^A-Za-z0-9._~-]", lambda each: b"%%%02X" % each[0][0], text).decode()


def _names(parts: Sequence[str]) -> Iterator[str]:
    for found in _PLACEHOLDER.finditer("\n".join(parts)):
        if not found[1]:
            yield found[2]


def _filled(part: str, texts: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda found: f"{{{found[2]}}}" if found[1] else texts[found[2]], part)
