"""The MCP endpoint: the tools with which other agents use a log.

Tools that read answer at once. Tools that would change something return a proposal, which
`commit_proposal` carries out. The server keeps nothing between two requests: a session is an
argument, and the state that a client sends back is sealed with the master key.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Final, get_args

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.request_state import InvalidRequestState, RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import BaseModel, Field, ValidationError, create_model
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from cueline.client import proposals
from cueline.client.client import Client
from cueline.client.decide import PROGRAM
from cueline.client.keys import master_key
from cueline.client.proposal_plan import ACTIONS
from cueline.errors import CuelineError
from cueline.gateway.answer import document_of
from cueline.gateway.guard import BODY_LIMIT, caller_of
from cueline.gateway.mcp_tasks import EXTENSION, add_tasks, task_for
from cueline.gateway.mcp_wait import Context, WaitAsked, wait_for
from cueline.gateway.problem import first_fault
from cueline.gateway.routes import ROUTES, Route

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""The names of this machine, in a `Host` header without its port."""
_ROWS: Final = 20
"""The most rows of a list by default; a model pays for each."""
_YEAR: Final = 366 * 86400.0
INSTRUCTIONS: Final = """\
Cueline runs agents in sessions that survive crashes. Start one with start_session, then wait.
Tools that would change something return a proposal: show it to the user, then call
commit_proposal with its id. Nothing has happened before that.
"""
READS: Final = {
    "list": "/sessions",
    "show": "/sessions/{session}",
    "transcript": "/sessions/{session}/transcript",
    "budget": "/sessions/{session}/budget",
    "pending": "/approvals",
    "runs": "/runs",
    "blueprints": "/blueprints",
    "costs": "/costs",
    "audit": "/audit",
    "status": "/status",
}
"""The tools that read, each with the path of the same request of the HTTP API."""
WRITES: Final = {
    "start_session": ("/runs", "Start a session of a blueprint; `blueprints` lists them."),
    "send": ("/sessions/{session}/messages", "Send a message to the agent of a session."),
    "set_model": ("/sessions/{session}/model", "Give the agent of a session another model."),
    "pause": ("/sessions/{session}/pause", "Pause a session: running calls finish."),
    "resume": ("/sessions/{id}/resume", "Continue a session that is paused or has crashed."),
    "raise_limits": ("/sessions/{session}/limits", "Raise limits of a session."),
    "stop": ("/sessions/{session}/stop", "End a session. This cannot be undone."),
    "approve": ("/approvals/{approval}/decision", "Allow a call that waits for a person."),
    "deny": ("/approvals/{approval}/decision", "Refuse a call that waits for a person."),
}
"""The tools that propose, each with the path of the request that the commit carries out."""
_NOT_HERE: Final = ("attachments", "texts")
"""Arguments that are too long for a proposal, or that JSON does not need."""
_PROPOSES: Final = "Returns a proposal: nothing happens until you call commit_proposal with its id."


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of the endpoint."""

    description: str
    arguments: type[BaseModel]
    call: Callable[..., Awaitable[object]]
    """A function of the request's context, its parameters, and the arguments."""
    reads: bool = True
    destroys: bool = False

    def listed(self, name: str) -> types.Tool:
        """Return the tool as the protocol lists it."""
        hints = types.ToolAnnotations(
            read_only_hint=self.reads,
            destructive_hint=self.destroys,
            idempotent_hint=True,
            open_world_hint=False,
        )
        schema = _without(self.arguments.model_json_schema(), _is_title)
        return types.Tool(
            name=name, description=self.description, input_schema=schema, annotations=hints
        )


def _reading(name: str, route: Route) -> Tool:
    async def call(context: Context, _: object, **given: Any) -> object:
        return await route.call(_client(context), **given)

    fields = _fields(route)
    if "limit" in fields:
        kind, field = fields["limit"]
        told = Field(_ROWS, description=field.description)
        fields["limit"] = (kind, told)
    text = f"{route.summary}\n{route.description}".strip()
    return Tool(text, _model(name, fields), call)


def _proposing(name: str, route: Route, text: str) -> Tool:
    kind, fixed, _ = ACTIONS[name]
    known = {"session", *kind.model_fields} - {*fixed, *_NOT_HERE}
    fields = {each: field for each, field in _fields(route).items() if each in known}
    if name == "set_model":
        fields["model"] = (str, Field(description="`PROVIDER/NAME`, or a NAME of its provider."))

    async def call(context: Context, _: object, **given: Any) -> object:
        plain = document_of(given)
        return await proposals.propose(_client(context), name, plain)  # type: ignore[arg-type]

    return Tool(f"{text}\n{_PROPOSES}", _model(name, fields), call)


def _fields(route: Route) -> dict[str, Any]:
    """Return the fields of a tool's arguments: the path, query and body of a request."""
    named = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    fields: dict[str, Any] = {
        "session" if each == "id" else each: (str, Field(description=f"The id of the {each}."))
        for each in ["session" if name == "id" else name for name in named]
    }
    for name, each in route.query.items():
        kind, told = get_args(each.annotation)
        fields[name] = (kind, Field(each.default, description=told))
    for name, field in {} if route.body is None else route.body.model_fields.items():
        fields[name] = (field.annotation, field)
    return fields


def _without(value: Any, drops: Callable[[str, Any], bool]) -> Any:
    """Return JSON without the members of objects that *drops* names."""
    if isinstance(value, list):
        return [_without(each, drops) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _without(each, drops) for key, each in value.items() if not drops(key, each)}


def _is_title(key: str, value: Any) -> bool:
    """Whether it is a title of pydantic's, which repeats the name."""
    return key == "title" and isinstance(value, str)


def _is_null(_: str, value: Any) -> bool:
    return value is None


def _model(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    return create_model(name, __config__={"extra": "forbid"}, **fields)


class _Committed(BaseModel, extra="forbid"):
    proposal: str = Field(description="The id of the proposal, as it was returned.")


def _deciding(text: str, decide: Callable[[Client, str], Awaitable[object]], **hints: bool) -> Tool:
    async def call(context: Context, _: object, proposal: str) -> object:
        return await decide(_client(context), proposal)

    return Tool(text, _Committed, call, **hints)


async def _wait(context: Context, params: types.CallToolRequestParams, **given: Any) -> object:
    asked = WaitAsked(**given)
    task = await task_for(context, _client(context), asked.session)
    return task or await wait_for(context, _client(context), params, asked)


def _client(context: Context) -> Client:
    assert context.request is not None
    return caller_of(context.request).client


def _principal(context: Context) -> str | None:
    """Return who calls, for the state that only they may send back."""
    caller = getattr(getattr(context.request, "state", None), "caller", None)
    return None if caller is None else f"{caller.client.log.tenant}\0{caller.person}"


def _tools() -> dict[str, Tool]:
    routes = {(each.method, each.path): each for each in ROUTES}
    reads = {name: _reading(name, routes["GET", path]) for name, path in READS.items()}
    writes = {
        name: _proposing(name, routes["POST", path], text) for name, (path, text) in WRITES.items()
    }
    waits = "Wait until a session has ended, is idle, or waits for a person."
    commits = "Carry out a proposal, once. A repetition returns the first receipt."
    rejects = "Give up a proposal that the user does not want."
    undoes = "Propose to undo a committed proposal: a pause, a resume, or another model."
    commit = partial(proposals.commit, channel=PROGRAM)
    return {
        **reads,
        "wait": Tool(waits, WaitAsked, _wait),
        **writes,
        "commit_proposal": _deciding(commits, commit, reads=False, destroys=True),
        "reject_proposal": _deciding(rejects, proposals.reject_proposal, reads=False),
        "undo_proposal": _deciding(undoes, proposals.undo_proposal),
    }


TOOLS: Final = _tools()
"""All tools, by name."""


async def _list(_: Context, __: object) -> types.ListToolsResult:
    listed = [tool.listed(name) for name, tool in TOOLS.items()]
    return types.ListToolsResult(tools=listed, ttl_ms=3_600_000, cache_scope="public")


async def _call(context: Context, params: types.CallToolRequestParams) -> Any:
    if (tool := TOOLS.get(params.name)) is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    try:
        given = tool.arguments.model_validate(params.arguments or {})
        named = {name: getattr(given, name) for name in given.model_fields_set}
        if "limit" in tool.arguments.model_fields:
            named["limit"] = getattr(given, "limit")  # noqa: B009 - made of a route
        said = await tool.call(context, params, **named)
    except ValidationError as error:
        _, message = first_fault(error)
        return _answer({"error": "InvalidInput", "message": message}, failed=True)
    except CuelineError as error:
        return _answer(error.to_json(), failed=True)
    return said if isinstance(said, types.Result) else _answer(document_of(said))


def _answer(told: Any, *, failed: bool = False) -> types.CallToolResult:
    """Return a result as JSON, and for models as its text without nulls."""
    content = told if isinstance(told, dict) else {"rows": told} if isinstance(told, list) else {}
    short = _without(content, _is_null)
    text = str(content["message"]) if failed else json.dumps(short, ensure_ascii=False)
    block = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[block], structured_content=content, is_error=failed)


def server() -> Server[Any]:
    """Return the MCP server of all logs; each request brings its client."""
    made: Server[Any] = Server(
        "cueline",
        version=version("cueline"),
        instructions=INSTRUCTIONS,
        on_list_tools=_list,
        on_call_tool=_call,
    )
    made.extensions[EXTENSION] = {}
    add_tasks(made, _client)
    return made


class _Codec:
    """Seals the state that clients send back, with the master key."""

    def seal(self, payload: bytes) -> str:
        return master_key().seal(payload, "requestState")

    def unseal(self, token: str) -> bytes:
        try:
            return master_key().unseal(token, "requestState")
        except ValueError as error:
            raise InvalidRequestState(str(error)) from error


class Endpoint:
    """The ASGI app of an MCP server; it needs no lifespan, and keeps nothing between requests.

    Args:
        server: answers the requests.
        hosts: the names in `Host` without a port; others get 421. None: all names.
    """

    def __init__(self, server: Server[Any], hosts: tuple[str, ...] | None = LOOPBACK) -> None:
        # The deadline of its approval limits the state, so the protocol's own limit is long.
        security = RequestStateSecurity(codec=_Codec(), ttl=_YEAR, bind_principal=_principal)
        server.middleware.append(RequestStateBoundary(security, default_audience=server.name))
        self._server = server
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if (refused := self._refusal(Headers(scope=scope))) is not None:
            await refused(scope, receive, send)
            return
        manager = StreamableHTTPSessionManager(
            self._server,
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=BODY_LIMIT,
        )
        # Blanks around a value are no part of it, but this server's parser keeps them.
        stripped = [(name, value.strip()) for name, value in scope["headers"]]
        async with manager.run():
            await manager.handle_request({**scope, "headers": stripped}, receive, send)

    def _refusal(self, headers: Headers) -> PlainTextResponse | None:
        """Return the answer to a request that a page of another site may have caused."""
        host = headers.get("host", "")
        if self._hosts is not None and _without_port(host) not in self._hosts:
            return PlainTextResponse(f"no server here is named {host!r}", 421)
        origin = headers.get("origin")
        seen = {host, headers.get("x-forwarded-host", host)}
        if origin is not None and origin.partition("://")[2] not in seen:
            return PlainTextResponse("requests of pages of other sites are refused", 403)
        return None


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host
