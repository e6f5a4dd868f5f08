"""The HTTP API: an ASGI app that answers the requests of `routes.ROUTES` with a client."""

import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from hashlib import sha256
from importlib.metadata import version
from inspect import Parameter, Signature
from typing import Annotated, Any, Final, get_args, get_origin

from fastapi import Body, FastAPI, Header, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import AwareDatetime, BeforeValidator
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as StarletteRoute

from cueline.client.client import Client
from cueline.errors import CuelineError
from cueline.gateway.agui import add_agui
from cueline.gateway.answer import document_of
from cueline.gateway.events import events_of, events_of_log, response_of
from cueline.gateway.guard import Guard, caller_of, path_of
from cueline.gateway.log_api import log_api
from cueline.gateway.login import login
from cueline.gateway.mcp import LOOPBACK, Endpoint, server
from cueline.gateway.metrics import metrics
from cueline.gateway.pages.actions import actions
from cueline.gateway.pages.lists import lists
from cueline.gateway.pages.page import error_page, files
from cueline.gateway.pages.session import session
from cueline.gateway.problem import (
    MEDIA_TYPE,
    SCHEMA,
    problem,
    problem_of,
    problem_of_input,
    status_of,
)
from cueline.gateway.rate_limit import RateLimit
from cueline.gateway.ray_events import ray_events
from cueline.gateway.routes import ROUTES, Route, pairs
from cueline.gateway.schemas import AnswerSchemas

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_PROBLEMS: Final = (400, 401, 403, 404, 409, 410, 411, 413, 422, 429, 500, 503)
"""The statuses of problems that any request can have."""


def _is_iso(given: object) -> object:
    """Refuse a number, which would count as seconds since 1970."""
    if isinstance(given, str) and not _DATE.match(given):
        raise ValueError("give a time such as 2026-01-31T07:30:00Z")
    return given


_Time = Annotated[AwareDatetime, BeforeValidator(_is_iso)]
"""A time that is no number."""
_After = Annotated[int, Header(ge=0, description="Only events after this position of the log.")]
_NAME: Final = re.compile(r"{(\w+)}")
METHOD_NOT_ALLOWED: Final = 405


def app_of(
    client: Client, *, token: str | None = None, hosts: tuple[str, ...] | None = LOOPBACK
) -> FastAPI:
    """Return the ASGI app of the API of one log.

    Args:
        client: the client that carries out the requests; the caller closes it after the app.
        token: a token that counts beside those of the log, with all rights of the process's user.
        hosts: see `Endpoint`.
    """
    made = FastAPI(
        title="cueline",
        version=version("cueline"),
        description="Start agents, talk to them, decide what they may do, and audit the log.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        exception_handlers={
            CuelineError: _answer_error,
            RequestValidationError: _answer_invalid,
            HTTPException: _answer_http,
            Exception: _answer_bug,
        },
        responses=_problems(),
    )

    strangers = RateLimit(most=20, per_second=0.5)
    made.add_middleware(Guard, client=client, token=token, strangers=strangers)
    for router in (login(client, strangers), files(), lists, session, actions(), metrics):
        made.include_router(router)
    for router in (log_api, ray_events):
        made.include_router(router)
    endpoint = Endpoint(server(), hosts)
    made.router.routes.append(StarletteRoute("/mcp", endpoint, include_in_schema=False))
    schemas = AnswerSchemas()
    for route in ROUTES:
        answer = {"application/json": {"schema": schemas.of(route.call)}}
        made.add_api_route(
            f"/v1{route.path}",
            _endpoint(route),
            methods=[route.method],
            summary=route.summary,
            description=_description(route),
            operation_id=_operation(route),
            responses={200: {"description": "The answer.", "content": answer}},
            response_model=None,
        )

    @made.get("/v1/events", response_model=None)
    async def all_events(request: Request, last_event_id: _After = 0) -> Response:
        """Follow the events of all sessions, by server-sent events, without end."""
        client = caller_of(request).client
        client.log.check_may("read")
        return response_of(events_of_log(client, last_event_id))

    @made.get("/v1/sessions/{session}/events", response_model=None)
    async def events(request: Request, session: str, last_event_id: _After = 0) -> Response:
        """Follow the events of a session to its end, by server-sent events."""
        client = caller_of(request).client
        stream = await client.find(session)
        return response_of(events_of(client, stream, last_event_id))

    add_agui(made)
    described = made.openapi

    def openapi() -> dict[str, Any]:
        told = described()
        told["components"]["schemas"] |= schemas.components
        return told

    made.openapi = openapi  # type: ignore[method-assign]  # as FastAPI's documentation does it
    return made


def _endpoint(route: Route) -> Callable[..., Awaitable[Response]]:
    """Return the function that answers the requests of *route*, with its signature."""
    mappings = {name for name, each in route.query.items() if _is_mapping(each.annotation)}

    async def endpoint(request: Request, **given: Any) -> Response:
        key, body = given.pop("idempotency_key", None), given.pop("body", None)
        for name in mappings:
            given[name] = pairs(name, given[name])
        if body is not None:
            given |= {name: getattr(body, name) for name in body.model_fields_set}
        if key is not None:
            given["key"] = key
        answer = JSONResponse(document_of(await route.call(caller_of(request).client, **given)))
        return _unless_known(request, answer) if route.method == "GET" else answer

    named = [Parameter("request", Parameter.KEYWORD_ONLY, annotation=Request)]
    named += [
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[str, Path()])
        for name in _NAME.findall(route.path)
    ]
    for name, each in route.query.items():
        kind, told = get_args(each.annotation)
        default = each.default
        if name in mappings:
            kind, default = list[str], []
            told = f"{told} Each as `key=value`."
        if kind == datetime | None:
            kind, told = _Time | None, f"{told} In ISO 8601 with a time zone."
        asked: Any = Annotated[kind, Query(description=told)]
        named.append(each.replace(annotation=asked, default=default))
    if route.body is not None:
        empty = all(not each.is_required() for each in route.body.model_fields.values())
        kind = Annotated[route.body, Body()]
        default = route.body() if empty else Parameter.empty
        named.append(Parameter("body", Parameter.KEYWORD_ONLY, annotation=kind, default=default))
    if route.keyed:
        told = "The key of this request: a second request with it is not recorded again."
        kind = Annotated[str | None, Header(description=told)]
        named.append(
            Parameter("idempotency_key", Parameter.KEYWORD_ONLY, annotation=kind, default=None)
        )
    endpoint.__signature__ = Signature(named)  # type: ignore[attr-defined]
    return endpoint


def _unless_known(request: Request, answer: Response) -> Response:
    """Return *answer* with a tag of its content, or 304 if the caller has the same."""
    tag = f'W/"{sha256(answer.body).hexdigest()[:32]}"'
    if tag in request.headers.get("if-none-match", ""):
        answer = Response(status_code=304)
    answer.headers["etag"] = tag
    answer.headers["cache-control"] = "private, no-cache"
    return answer


def _description(route: Route) -> str:
    same = f"The same at a shell: `{route.command}`" if route.command else ""
    return f"{route.description}\n\n{same}".strip()


def _is_mapping(annotation: Any) -> bool:
    kind = get_args(annotation)[0]
    return any(get_origin(each) is Mapping for each in (kind, *get_args(kind)))


def _operation(route: Route) -> str:
    words = [each for each in _NAME.sub("", route.path).split("/") if each]
    return "_".join((route.method.lower(), *words, *(["one"] if route.path.endswith("}") else [])))


def _problems() -> dict[int | str, dict[str, Any]]:
    content = {MEDIA_TYPE: {"schema": SCHEMA}}
    return {each: {"description": "A problem", "content": content} for each in _PROBLEMS}


def _wants_page(request: Request) -> bool:
    is_api = path_of(request.scope).startswith("/v1/")
    return not is_api and "text/html" in request.headers.get("accept", "")


async def _answer_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, CuelineError):
        raise error
    if _wants_page(request):
        return error_page(request, error.__class__.__name__, str(error), status_of(error))
    return problem_of(error)


async def _answer_invalid(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    return problem_of_input(error)


async def _answer_bug(_: Request, error: Exception) -> Response:
    """Say that it failed; the server prints the traceback, which can contain secrets."""
    said = f"cueline failed ({type(error).__name__}); the output of the server has the cause"
    return problem(500, "Failed", said)


async def _answer_http(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if _wants_page(request):
        return error_page(request, error.detail, error.detail, error.status_code)
    refused = problem(error.status_code, error.detail, error.detail)
    refused.headers.update(error.headers or {})
    if error.status_code == METHOD_NOT_ALLOWED:  # several routes have the same path
        path = path_of(request.scope)
        routes = [each for each in request.app.routes if isinstance(each, APIRoute)]
        fitting = (each.methods or () for each in routes if each.path_regex.match(path))
        refused.headers["allow"] = ", ".join(sorted(set().union(*fitting)))
    return refused
